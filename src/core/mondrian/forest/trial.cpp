#include "mondrian/forest/trial.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <span>
#include <utility>

#include "base/elementary.hpp"
#include "base/rng.hpp"
#include "mondrian/forest/forest.hpp"
#include "mondrian/forest/relevance.hpp"
#include "mondrian/points/columns.hpp"
#include "mondrian/process/measure.hpp"

namespace onlineforest::mondrian {

namespace {

constexpr std::size_t kFewestPoints = 40;  // fewer points are not enough to learn a measure
constexpr std::size_t kTrialPoints = 4096, kTrialTrees = 20;
constexpr std::size_t kTestedOneIn = 4;  // a trial tests one in four of its points

// Predictions take memory and time for each class, so fewer points are tested where there are many classes. With more
// than kMostClasses, they would be too few.
constexpr std::size_t kTestedNumbers = std::size_t{1} << 22;  // at most: points tested times classes
constexpr std::size_t kMostClasses = kTestedNumbers / 16;

constexpr double kLeafDiscounts[] = {kUsualLeafDiscount, 0.03, 0.1, 0.6, 0.9};

// Shares are a power of the relevance. The first power is the default, which another must clearly beat. While few
// points are tested the default is the last, which ignores the relevance.
constexpr double kPowers[] = {2.0, 1.0, 0.0};
constexpr std::size_t kFewTested = 256;

constexpr double kFloor = 0.01;  // fraction of the cuts spread evenly, so that no feature gets weight 0 for good

// Seeds apart from those of the trees.
constexpr std::uint64_t kSeedOfTrial = 0x7472'6961'6c00'0000u, kSeedOfRelevance = 0x7265'6c65'7661'6e63u;

// Shares in proportion to a power of the relevance; all 1 if there is no evidence.
std::vector<double> shares_of(std::span<const double> relevance, double power) {
  const double largest = std::ranges::max(relevance);
  std::vector<double> shares(relevance.size(), 1.0);
  if (power == 0.0 || !(largest > 0.0)) return shares;
  for (std::size_t d = 0; d < shares.size(); ++d) shares[d] = power_of(std::max(relevance[d], 0.0) / largest, power);
  const double mean = std::accumulate(shares.begin(), shares.end(), 0.0) / static_cast<double>(shares.size());
  for (double& share : shares) share = (1.0 - kFloor) * share / mean + kFloor;
  return shares;
}

// The losses of one measure at the tested points of a trial.
class Losses {
 public:
  // The loss at a point that counts so often.
  void add(double loss, double count) {
    each_.push_back({loss, count});
    sum_ += count * loss;
    n_ += count;
  }

  double mean() const { return sum_ / n_; }

  // Whether the mean is less by more than one standard error of the difference, and more than rounding.
  bool clearly_less_than(const Losses& other) const {
    const double difference = other.mean() - mean();
    double squares = 0.0;
    for (std::size_t i = 0; i < each_.size(); ++i) {
      const double deviation = each_[i].count * (other.each_[i].loss - each_[i].loss - difference);
      squares += deviation * deviation;
    }
    constexpr double rounding = 1e-12;  // losses are of the order of 1
    return difference > std::sqrt(squares) / n_ + rounding;
  }

 private:
  struct Loss {
    double loss, count;
  };

  std::vector<Loss> each_;
  double sum_ = 0.0, n_ = 0.0;
};

// The index of the least mean loss if it is clearly less than the default's, otherwise `usual`, the default.
std::size_t best_of(std::span<const Losses> losses, std::size_t usual) {
  const auto least = std::ranges::min_element(losses, {}, &Losses::mean);
  return least->clearly_less_than(losses[usual]) ? static_cast<std::size_t>(least - losses.begin()) : usual;
}

PointStore subset(const PointStore& points, std::span<const Slot> slots) {
  PointStore some(points.n_features());
  for (const Slot slot : slots) {
    const Label label = points.label(slot);
    const std::int32_t count = points.count(slot);
    some.append(points.row_of(slot), std::span(&label, 1),
                points.all_count_once() ? std::span<const std::int32_t>() : std::span(&count, 1));
  }
  return some;
}

// Points drawn at random, split into learned and tested ones.
struct Split {
  Split(std::size_t n_points, std::size_t most_tested, Rng& rng) : slots(draw_slots(n_points, kTrialPoints, rng)) {
    n_tested = std::min(slots.size() / kTestedOneIn, most_tested);
  }

  std::span<const Slot> tested() const { return std::span(slots).first(n_tested); }
  std::span<const Slot> learned() const { return std::span(slots).subspan(n_tested); }

  std::vector<Slot> slots;
  std::size_t n_tested;
};

class Trial {
 public:
  Trial(const PointStore& points, std::int32_t n_classes, const ForestOptions& options, const Call& call)
      : options_(options),
        n_classes_(n_classes),
        call_(call),
        rng_(options.seed ^ kSeedOfTrial, points.size()),
        split_(points.size(), kTestedNumbers / static_cast<std::size_t>(n_classes), rng_),
        tested_(subset(points, split_.tested())),
        learned_(subset(points, split_.learned())),
        powers_(kPowers),
        leaf_discounts_(kLeafDiscounts) {
    options_.n_trees = std::min(options_.n_trees, kTrialTrees);
    options_.keep = {};
    options_.learns_leaf_discount = false;
    if (options.weight_rule != WeightRule::kLearned) powers_ = powers_.last(1);
    if (!options.learns_leaf_discount) leaf_discounts_ = std::span(&options_.leaf_discount, 1);
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  struct Result {
    double power, leaf_discount;
  };

  Result run() {
    const Columns columns(learned_, learned_.size());
    std::vector<double> relevance(learned_.n_features(), 1.0);
    if (powers_.size() > 1) {
      relevance = measure_relevance(learned_, columns, n_classes_, rng_.next(), call_);
      if (!(std::ranges::max(relevance) > 0.0)) powers_ = powers_.last(1);
    }
    options_.seed = rng_.next();
    std::deque<Forest> forests;
    std::vector<Losses> of_powers;
    for (const double power : powers_) {
      Forest& forest = forests.emplace_back(options_with(shares_of(relevance, power), columns.box()));
      forest.learn_points(learned_, n_classes_, call_);
      of_powers.push_back(losses(forest, leaf_discounts_.front()));
    }
    const std::size_t best = best_of(of_powers, tested_.size() < kFewTested ? of_powers.size() - 1 : 0);
    std::vector<Losses> of_discounts{of_powers[best]};
    for (const double leaf_discount : leaf_discounts_.subspan(1)) {
      of_discounts.push_back(losses(forests[best], leaf_discount));
    }
    return {powers_[best], leaf_discounts_[best_of(of_discounts, 0)]};
  }

 private:
  Losses losses(Forest& forest, double leaf_discount) const {
    constexpr double least_probability = 1e-9;
    forest.set_leaf_discount(leaf_discount);
    const std::vector<double> predicted = forest.predict(tested_.rows(), call_);
    Losses losses;
    for (std::size_t i = 0; i < tested_.size(); ++i) {
      const Slot slot = static_cast<Slot>(i);
      const double p =
          predicted[i * static_cast<std::size_t>(n_classes_) + static_cast<std::size_t>(tested_.label(slot))];
      losses.add(-natural_log(std::max(p, least_probability)), tested_.count(slot));
    }
    return losses;
  }

  ForestOptions options_with(std::span<const double> shares, BoxView box) const {
    ForestOptions options = options_;
    if (options.weight_rule == WeightRule::kLearned) {
      options.weight_rule = WeightRule::kFixed;
      options.weights = weights_of(shares, box);
    }
    return options;
  }

  ForestOptions options_;
  std::int32_t n_classes_;
  const Call& call_;
  Rng rng_;
  Split split_;
  PointStore tested_, learned_;
  std::span<const double> powers_, leaf_discounts_;
};

// The shares of the features, computed from all points.
std::vector<double> learned_shares(const PointStore& points, std::int32_t n_classes, double power, std::uint64_t seed,
                                   const Call& call) {
  if (power == 0.0) return std::vector<double>(points.n_features(), 1.0);
  StopProbe stop = call.probe();
  const Columns columns(points, points.size(), [&stop](std::size_t n) { stop.tick(n); });
  seed = Rng(seed ^ kSeedOfRelevance, points.size()).next();
  return shares_of(measure_relevance(points, columns, n_classes, seed, call), power);
}

}  // namespace

bool is_trial_possible(std::size_t n_points, std::int32_t n_classes) {
  return n_points >= kFewestPoints && static_cast<std::size_t>(n_classes) <= kMostClasses;
}

Chosen choose_measure(const PointStore& points, std::int32_t n_classes, const ForestOptions& options,
                      const Call& call) {
  const Trial::Result result = Trial(points, n_classes, options, call).run();
  return {learned_shares(points, n_classes, result.power, options.seed, call), result.leaf_discount};
}

}  // namespace onlineforest::mondrian
