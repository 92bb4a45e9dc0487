// Learns some points under several measures and predicts others, to choose the best measure. Knows no kind of target: a
// subject says how forests of its kind learn, how their loss is computed, and what is tuned.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/call.hpp"
#include "base/elementary.hpp"
#include "forest/forest.hpp"
#include "forest/relevance.hpp"
#include "points/columns.hpp"

namespace onlineforest {

inline constexpr std::size_t kFewestPoints = 40;  // fewer points are not enough to learn a measure
inline constexpr std::size_t kTrialPoints = 4096, kTrialTrees = 20;
inline constexpr std::size_t kTestedOneIn = 4;  // of the points of a trial

// Shares are a power of the relevance. The first power is the default, which another must clearly beat. While few
// points are tested the default is the last, which ignores the relevance.
inline constexpr double kPowers[] = {2.0, 1.0, 0.0};
inline constexpr std::size_t kFewTested = 256;

inline constexpr double kFloor = 0.01;  // fraction of the cuts spread evenly, so that no feature gets weight 0 for good

// Seeds apart from those of the trees.
inline constexpr std::uint64_t kSeedOfTrial = 0x7472'6961'6c00'0000u, kSeedOfRelevance = 0x7265'6c65'7661'6e63u;

// Shares in proportion to a power of the relevance; all 1 if there is no evidence.
inline std::vector<double> shares_of(std::span<const double> relevance, double power) {
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
  void add(double loss, double weight) {
    each_.push_back({loss, weight});
    sum_ += weight * loss;
    weight_ += weight;
  }

  double mean() const { return sum_ / weight_; }

  // Whether the mean is less by more than one standard error of the difference, and more than rounding.
  bool clearly_less_than(const Losses& other) const {
    const double difference = other.mean() - mean();
    double squares = 0.0;
    for (std::size_t i = 0; i < each_.size(); ++i) {
      const double deviation = each_[i].weight * (other.each_[i].loss - each_[i].loss - difference);
      squares += deviation * deviation;
    }
    constexpr double rounding = 1e-12;  // losses are of the order of 1
    return difference > std::sqrt(squares) / weight_ + rounding;
  }

 private:
  struct Loss {
    double loss, weight;
  };

  std::vector<Loss> each_;
  double sum_ = 0.0, weight_ = 0.0;
};

// The index of the least mean loss if it is clearly less than the default's, otherwise `usual`, the default.
inline std::size_t best_of(std::span<const Losses> losses, std::size_t usual) {
  const auto least = std::ranges::min_element(losses, {}, &Losses::mean);
  return least->clearly_less_than(losses[usual]) ? static_cast<std::size_t>(least - losses.begin()) : usual;
}

// Tuned parameters and the losses with them.
template <class Tuning>
struct Tuned {
  Tuning tuning;
  Losses losses;
};

template <class Value>
PointStore<Value> subset(const PointStore<Value>& points, std::span<const Slot> slots) {
  PointStore<Value> some(points.n_features());
  for (const Slot slot : slots) {
    const Value value = points.value(slot);
    const Weight weight = points.weight(slot);
    some.append(std::span(points.row(slot), points.n_features()), std::span(&value, 1),
                points.are_unweighted() ? std::span<const Weight>() : std::span(&weight, 1));
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

// Its result depends on the points and the options alone, not on the number of threads.
template <class Subject>
class Trial {
 public:
  using Forest = typename Subject::Forest;
  using Points = typename Forest::Points;
  using Options = typename Forest::Options;
  using Tuning = typename Subject::Tuning;

  Trial(const Subject& subject, const Points& points, const Options& options, const Call& call)
      : subject_(subject),
        options_(subject.fixed(options)),
        call_(call),
        rng_(options.seed ^ kSeedOfTrial, points.size()),
        split_(points.size(), subject.most_tested(), rng_),
        tested_(subset(points, split_.tested())),
        learned_(subset(points, split_.learned())),
        powers_(kPowers) {
    options_.n_trees = std::min(options_.n_trees, kTrialTrees);
    options_.held = {};  // all shards of a forest run the same trial
    options_.keep = {};
    if (options.weight_rule != WeightRule::kLearned) powers_ = powers_.last(1);
  }

  struct Result {
    double power;
    Tuning tuning;
  };

  Result run() {
    const Columns columns(learned_, learned_.size());
    std::vector<double> relevance(learned_.n_features(), 1.0);
    if (powers_.size() > 1) {
      relevance = subject_.relevance(learned_, columns, rng_.next(), call_);
      if (!(std::ranges::max(relevance) > 0.0)) powers_ = powers_.last(1);
    }
    options_.seed = rng_.next();
    std::deque<Forest> forests;
    std::vector<Tuned<Tuning>> starts;
    std::vector<Losses> of_powers;
    for (const double power : powers_) {
      Forest& forest = forests.emplace_back(options_with(shares_of(relevance, power), columns.box()));
      subject_.learn(forest, learned_, call_);
      starts.push_back(subject_.start(starts.empty() ? nullptr : &starts.front(), evaluate(forest)));
      of_powers.push_back(starts.back().losses);
    }
    const std::size_t best = best_of(of_powers, tested_.size() < kFewTested ? of_powers.size() - 1 : 0);
    return {powers_[best], subject_.finish(starts[best], evaluate(forests[best]))};
  }

 private:
  // A function that returns the losses of a forest with given parameters.
  auto evaluate(Forest& forest) {
    return [this, &forest](const Tuning& tuning) { return subject_.losses(forest, tested_, tuning, call_); };
  }

  Options options_with(std::span<const double> shares, BoxView box) const {
    Options options = options_;
    if (options.weight_rule == WeightRule::kLearned) {
      options.weight_rule = WeightRule::kFixed;
      options.weights = weights_of(shares, box);
    }
    return options;
  }

  const Subject& subject_;
  Options options_;
  const Call& call_;
  Rng rng_;
  Split split_;
  Points tested_, learned_;
  std::span<const double> powers_;
};

// The shares of the features, computed from all points.
template <class Subject, class Points>
std::vector<double> learned_shares(const Subject& subject, const Points& points, double power, std::uint64_t seed,
                                   const Call& call) {
  if (power == 0.0) return std::vector<double>(points.n_features(), 1.0);
  StopProbe stop = call.probe();
  const Columns columns(points, points.size(), [&stop](std::size_t n) { stop.tick(n); });
  seed = Rng(seed ^ kSeedOfRelevance, points.size()).next();
  return shares_of(subject.relevance(points, columns, seed, call), power);
}

}  // namespace onlineforest
