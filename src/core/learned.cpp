#include "learned.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <span>

#include "relevance.hpp"

namespace onlineforest {

namespace {

constexpr std::size_t kFewestPoints = 40;  // below, nothing is learned
constexpr std::size_t kTrialPoints = 4096, kTrialTrees = 20;
constexpr std::size_t kTestedOneIn = 4;                       // of the points of a trial
constexpr std::size_t kTestedNumbers = std::size_t{1} << 22;  // at most: points tested times classes
constexpr std::size_t kMostClasses = kTestedNumbers / 16;     // beyond, too few points could be tested

// What is tried. The first of each is the usual choice, which another must beat clearly; but as long as few points are
// tested, the last of the powers, which believes nothing.
constexpr double kPowers[] = {2.0, 1.0, 0.0};
constexpr double kLeafDiscounts[] = {0.3, 0.03, 0.1, 0.6, 0.9};
constexpr std::size_t kFewTested = 256;

constexpr double kFloor = 0.01;             // of the cuts go evenly to all features, so that none is lost for good
constexpr double kLeastProbability = 1e-9;  // in a loss

// Random numbers apart from those of the trees.
constexpr std::uint64_t kSeedOfTrial = 0x7472'6961'6c00'0000u, kSeedOfRelevance = 0x7265'6c65'7661'6e63u;

// Shares in proportion to a power of the relevance; even if there is no evidence at all.
std::vector<double> shares_of(std::span<const double> relevance, double power) {
  const double largest = std::ranges::max(relevance);
  std::vector<double> shares(relevance.size(), 1.0);
  if (power == 0.0 || !(largest > 0.0)) return shares;
  for (std::size_t d = 0; d < shares.size(); ++d) shares[d] = std::pow(std::max(relevance[d], 0.0) / largest, power);
  const double mean = std::accumulate(shares.begin(), shares.end(), 0.0) / static_cast<double>(shares.size());
  for (double& share : shares) share = (1.0 - kFloor) * share / mean + kFloor;
  return shares;
}

// The losses of one measure at the points of a trial that were not learned.
struct Losses {
  std::vector<double> each;

  double mean() const { return std::accumulate(each.begin(), each.end(), 0.0) / static_cast<double>(each.size()); }

  // Less by more than a standard error of the difference.
  bool clearly_less_than(const Losses& other) const {
    const double difference = other.mean() - mean();
    double squares = 0.0;
    for (std::size_t i = 0; i < each.size(); ++i) {
      const double deviation = other.each[i] - each[i] - difference;
      squares += deviation * deviation;
    }
    return difference > std::sqrt(squares) / static_cast<double>(each.size());
  }
};

// The place of the least losses, if they are clearly less than the usual ones; else the usual place.
std::size_t best_of(std::span<const Losses> losses, std::size_t usual) {
  const auto least = std::ranges::min_element(losses, {}, &Losses::mean);
  return least->clearly_less_than(losses[usual]) ? static_cast<std::size_t>(least - losses.begin()) : usual;
}

PointStore<Label> subset(const PointStore<Label>& points, std::span<const Slot> slots) {
  PointStore<Label> some(points.n_features());
  for (const Slot slot : slots) {
    const Label label = points.value(slot);
    some.append(std::span(points.row(slot), points.n_features()), std::span(&label, 1));
  }
  return some;
}

// Learns some of the points under several measures and predicts others: the power and the leaf discount of least loss.
class Trial {
 public:
  Trial(const PointStore<Label>& points, std::int32_t n_classes, const ForestOptions& options, std::size_t n_threads,
        StopSignal& signal)
      : n_classes_(n_classes),
        options_(options),
        n_threads_(n_threads),
        signal_(signal),
        rng_(options.seed ^ kSeedOfTrial, points.size()),
        slots_(draw_slots(points.size(), kTrialPoints, rng_)),
        tested_(subset(points, std::span(slots_).first(n_tested(slots_.size(), n_classes)))),
        learned_(subset(points, std::span(slots_).subspan(tested_.size()))),
        powers_(kPowers),
        leaf_discounts_(kLeafDiscounts) {
    options_.n_trees = std::min(options_.n_trees, kTrialTrees);
    options_.learns_leaf_discount = false;
    if (options.weight_rule != WeightRule::kLearned) powers_ = powers_.last(1);
    if (!options.learns_leaf_discount) leaf_discounts_ = std::span(&options.leaf_discount, 1);
  }

  struct Result {
    double power, leaf_discount;
  };

  Result run() {
    const Columns columns(learned_, learned_.size());
    std::vector<double> relevance(learned_.n_features(), 1.0);
    if (powers_.size() > 1) {
      relevance = measure_relevance(learned_, columns, n_classes_, rng_.next(), n_threads_, signal_);
      if (!(std::ranges::max(relevance) > 0.0)) powers_ = powers_.last(1);
    }
    options_.seed = rng_.next();
    std::deque<LabelForest> forests;
    std::vector<Losses> of_powers, of_leaf_discounts;
    for (const double power : powers_) {
      LabelForest& forest = forests.emplace_back(options_with(shares_of(relevance, power), columns.box()));
      forest.learn(learned_.rows(), learned_.values(), n_classes_, n_threads_, stop_requested());
      of_powers.push_back(losses_of(forest, leaf_discounts_.front()));
    }
    const std::size_t power = best_of(of_powers, tested_.size() < kFewTested ? of_powers.size() - 1 : 0);
    of_leaf_discounts.push_back(of_powers[power]);
    for (const double leaf_discount : leaf_discounts_.subspan(1)) {
      of_leaf_discounts.push_back(losses_of(forests[power], leaf_discount));
    }
    return {powers_[power], leaf_discounts_[best_of(of_leaf_discounts, 0)]};
  }

 private:
  // Fewer where there are very many classes, for predictions take memory and time for each.
  static std::size_t n_tested(std::size_t n, std::int32_t n_classes) {
    return std::min(n / kTestedOneIn, kTestedNumbers / static_cast<std::size_t>(n_classes));
  }

  LabelForest::StopRequested stop_requested() {
    return [this] {
      signal_.poll();
      return signal_.stopped();
    };
  }

  ForestOptions options_with(std::span<const double> shares, BoxView box) const {
    ForestOptions options = options_;
    if (options.weight_rule == WeightRule::kLearned) {
      options.weight_rule = WeightRule::kFixed;
      options.weights = weights_of(shares, box);
    }
    return options;
  }

  Losses losses_of(LabelForest& forest, double leaf_discount) {
    forest.set_leaf_discount(leaf_discount);
    const std::vector<double> predicted = forest.predict(tested_.rows(), n_threads_, stop_requested());
    Losses losses;
    for (std::size_t i = 0; i < tested_.size(); ++i) {
      const auto label = static_cast<std::size_t>(tested_.value(static_cast<Slot>(i)));
      const double p = predicted[i * static_cast<std::size_t>(n_classes_) + label];
      losses.each.push_back(-std::log(std::max(p, kLeastProbability)));
    }
    return losses;
  }

  std::int32_t n_classes_;
  ForestOptions options_;
  std::size_t n_threads_;
  StopSignal& signal_;
  Rng rng_;
  std::vector<Slot> slots_;
  PointStore<Label> tested_, learned_;
  std::span<const double> powers_, leaf_discounts_;
};

}  // namespace

Learned learn_measure(const PointStore<Label>& points, std::int32_t n_classes, const ForestOptions& options,
                      std::size_t n_threads, StopSignal& signal) {
  Learned learned{std::vector<double>(points.n_features(), 1.0),
                  options.learns_leaf_discount ? kLeafDiscounts[0] : options.leaf_discount};
  if (points.size() < kFewestPoints || static_cast<std::size_t>(n_classes) > kMostClasses) return learned;
  const auto [power, leaf_discount] = Trial(points, n_classes, options, n_threads, signal).run();
  learned.leaf_discount = leaf_discount;
  if (power > 0.0) {
    StopProbe stop(signal, true);
    const Columns columns(points, points.size(), [&stop](std::size_t n) { stop.tick(n); });
    const std::uint64_t seed = Rng(options.seed ^ kSeedOfRelevance, points.size()).next();
    learned.shares = shares_of(measure_relevance(points, columns, n_classes, seed, n_threads, signal), power);
  }
  return learned;
}

}  // namespace onlineforest
