#include "orderfree/labels/calibration.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <utility>

#include "base/powers.hpp"
#include "base/require.hpp"
#include "orderfree/forest/calibrators.hpp"

namespace onlineforest::orderfree {

namespace {

constexpr double kLog2 = 0.6931471805599453;
constexpr double kLeastLog = -40.0;  // binary logarithm for a label to which no tree gives mass
// Shares are rounded to multiples of 1 / kParts, because sums of integers do not depend on the order.
constexpr double kParts = 0x1p40;

// Binary logarithms of the powers to try. Most forests need a power between 1 and 4.
constexpr double kLeastLogOfPower = -3.0, kMostLogOfPower = 5.0;
// Ordered from likely to unlikely, so that loss() can stop early.
constexpr std::array kWholeLogs{0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 4.0, 5.0};
constexpr std::size_t kNoLog = std::numeric_limits<std::size_t>::max();
// Strength of the penalty that pulls the power towards 1, in samples.
constexpr double kPrior = 4.0;
constexpr std::size_t kRowsAtOnce = 64;           // rows whose powers one loop computes, so that it can be vectorised
constexpr double kMostStep = 1.4426950408889634;  // largest step of the extrapolation: a factor of e
// Penalty of every positive stop weight, divided by the number of calibrators that choose: where they are few, a
// positive one must be much better than 0.
constexpr double kPriorOfStop = 256.0;
// Fewer calibrators that choose, beside those of the most frequent label, tell nothing about a stop weight: one or two
// samples of a rare label would choose it by chance.
constexpr std::size_t kFewestOthers = 4;
constexpr Weight kLeastStop = 10 * kOne;
constexpr Weight kMostShareOfStop = 10;  // a stop weight is at most the total weight divided by this

[[nodiscard]] std::int64_t parts_of(double share) {
  const double parts = share * kParts + 0.5;
  return static_cast<std::int64_t>(parts);
}

// The binary logarithm of mass / largest, where `largest` is the largest mass of the row; at least kLeastLog.
[[nodiscard]] double log_of(double mass, double largest) {
  return mass > 0.0 ? std::max(binary_log(mass / largest), kLeastLog) : kLeastLog;
}

// The masses of one sample, as logarithms. All labels without mass have the same probability, so they are one group.
struct Row {
  std::size_t begin, end;  // range of the logarithms of labels with mass
  std::size_t true_at;     // index of the logarithm of the true label; `end` if that label has no mass
  double log_of_others;    // logarithm of each label without mass
  double n_others;         // number of labels without mass
  double weight;
};

// The rows to which a power is fitted: every `step`-th calibrator. `sums` are those of one stop weight.
class Rows {
 public:
  Rows(const LeftOutVotes& votes, std::span<const std::uint64_t> sums, std::size_t step = 1)
      : n_known_(votes.held.size()) {
    const std::size_t n_labels = votes.n_labels;
    for (std::size_t i = 0; i < votes.labels.size(); i += step) {
      const std::span<const std::uint64_t> masses = sums.subspan(i * (n_labels + 1), n_labels);
      const double others = static_cast<double>(sums[(i + 1) * (n_labels + 1) - 1]) / static_cast<double>(n_known_);
      const double largest = static_cast<double>(std::ranges::max(masses)) + others;
      Row row{logs_.size(), 0, kNoLog, log_of(others, largest), 0.0, multiplicity(votes.weights[i])};
      for (const Label label : votes.held) {
        const std::uint64_t mass = masses[static_cast<std::size_t>(label)];
        if (mass > 0) {
          if (label == votes.labels[i]) row.true_at = logs_.size();
          logs_.push_back(log_of(static_cast<double>(mass) + others, largest));
        } else {
          row.n_others += 1.0;
        }
      }
      row.end = logs_.size();
      row.true_at = std::min(row.true_at, row.end);
      rows_.push_back(row);
    }
  }

  // The sum of log losses plus the penalty on the power, for a power given by its binary logarithm. Returns infinity
  // once the sum exceeds `most`.
  [[nodiscard]] double loss(double log_of_power, double spread, double most = kInfinity) const {
    const double power = binary_power(log_of_power), even = spread / static_cast<double>(n_known_);
    double sum = 0.0;
    std::vector<double> raised;
    for (std::size_t begin = 0; begin < rows_.size(); begin += kRowsAtOnce) {
      const std::span<const Row> rows = std::span(rows_).subspan(begin, std::min(kRowsAtOnce, rows_.size() - begin));
      const std::size_t first = rows.front().begin;
      raised.resize(rows.back().end - first);
      for (std::size_t i = 0; i < raised.size(); ++i) raised[i] = binary_power(power * logs_[first + i]);
      for (const Row& row : rows) {
        std::int64_t parts = 0;
        for (std::size_t i = row.begin; i < row.end; ++i) parts += parts_of(raised[i - first]);
        const double of_others = row.n_others > 0.0 ? binary_power(power * row.log_of_others) : 0.0;
        const double of_true = row.true_at == row.end ? of_others : raised[row.true_at - first];
        const double total = static_cast<double>(parts) / kParts + row.n_others * of_others;
        const double probability = (1.0 - spread) * (of_true / total) + even;
        sum -= row.weight * binary_log(probability);
      }
      if (sum * kLog2 > most) return kInfinity;  // the remaining terms are not negative
    }
    const double log = log_of_power * kLog2;
    return sum * kLog2 + kPrior * log * log / 2.0;
  }

 private:
  std::size_t n_known_;
  std::vector<double> logs_;
  std::vector<Row> rows_;
};

// The binary logarithm of the power of least loss: the best whole number, then a golden-section search around it.
[[nodiscard]] double best_log(const Rows& rows, double spread) {
  double best = 0.0, least = kInfinity;
  for (const double log : kWholeLogs) {
    const double loss = rows.loss(log, spread, least);
    if (loss < least || (loss == least && log < best)) {
      least = loss;
      best = log;
    }
  }
  constexpr double kSection = 0.6180339887498949;
  double low = std::max(best - 1.0, kLeastLogOfPower), high = std::min(best + 1.0, kMostLogOfPower);
  double left = high - kSection * (high - low), right = low + kSection * (high - low);
  double at_left = rows.loss(left, spread), at_right = rows.loss(right, spread);
  for (int step = 0; step < 12; ++step) {
    if (at_left <= at_right) {
      high = std::exchange(right, left);
      at_right = at_left;
      left = high - kSection * (high - low);
      at_left = rows.loss(left, spread);
    } else {
      low = std::exchange(left, right);
      at_left = at_right;
      right = low + kSection * (high - low);
      at_right = rows.loss(right, spread);
    }
  }
  return at_left <= at_right ? left : right;
}

[[nodiscard]] bool can_calibrate(const LeftOutVotes& votes) {
  return votes.labels.size() >= kFewestCalibrators && votes.held.size() >= 2;
}

// Whether the calibrators that choose, every second one, can choose a stop weight.
[[nodiscard]] bool can_choose(const LeftOutVotes& votes) {
  if (!can_calibrate(votes)) return false;
  std::vector<std::size_t> counts(votes.n_labels);
  for (std::size_t i = 0; i < votes.labels.size(); i += 2) ++counts[static_cast<std::size_t>(votes.labels[i])];
  const std::size_t n = (votes.labels.size() + 1) / 2;
  return n - std::ranges::max(counts) >= kFewestOthers;
}

[[nodiscard]] double spread_of(const LeftOutVotes& votes) {
  return 1.0 / (static_cast<double>(votes.labels.size()) + 2.0);
}

}  // namespace

void check_calibration(const LabelCalibration& calibration) {
  const auto check = [](const char* name, double number, double least, double most) {
    require(number >= least && number <= most, [&] {
      std::ostringstream text;
      text << name << " must be in [" << least << ", " << most << "], got " << number;
      return text.str();
    });
  };
  check("power", calibration.power, kLeastPower, kMostPower);
  check("spread", calibration.spread, 0.0, kMostSpread);
  check("stop_weight", static_cast<double>(calibration.stop_weight), 0.0, static_cast<double>(kMostWeight));
}

std::vector<Weight> stop_weights(Weight total, StopRange range) {
  std::vector<Weight> result;
  const auto add = [&](Weight stop) {
    if (stop >= range.least && stop < range.limit) result.push_back(stop);
  };
  add(0);
  for (Weight stop = kLeastStop; stop <= total / kMostShareOfStop; stop *= 2) add(stop);
  return result;
}

void find_probabilities(std::span<const std::uint64_t> masses, std::uint64_t rest, std::span<const Label> known,
                        const LabelCalibration& calibration, std::span<double> probabilities) {
  const double others = static_cast<double>(rest) / static_cast<double>(known.size());
  if (calibration.is_none()) {
    std::uint64_t sum = rest;
    for (const std::uint64_t mass : masses) sum += mass;
    for (std::size_t k = 0; k < known.size(); ++k) {
      const std::uint64_t mass = masses[static_cast<std::size_t>(known[k])];
      probabilities[k] = (static_cast<double>(mass) + others) / static_cast<double>(sum);
    }
    return;
  }
  std::uint64_t most = 0, n_others = 0;
  std::int64_t parts = 0;
  for (const Label label : known) most = std::max(most, masses[static_cast<std::size_t>(label)]);
  const double largest = static_cast<double>(most) + others;
  const auto raised = [&](std::uint64_t mass) {
    return binary_power(calibration.power * log_of(static_cast<double>(mass) + others, largest));
  };
  for (std::size_t k = 0; k < known.size(); ++k) {
    const std::uint64_t mass = masses[static_cast<std::size_t>(known[k])];
    if (mass == 0) {
      ++n_others;
    } else {
      probabilities[k] = raised(mass);
      parts += parts_of(probabilities[k]);
    }
  }
  const double of_others = n_others > 0 ? raised(0) : 0.0;
  const double total = static_cast<double>(parts) / kParts + static_cast<double>(n_others) * of_others;
  const double even = calibration.spread / static_cast<double>(known.size());
  for (std::size_t k = 0; k < known.size(); ++k) {
    const double share = masses[static_cast<std::size_t>(known[k])] == 0 ? of_others : probabilities[k];
    probabilities[k] = (1.0 - calibration.spread) * (share / total) + even;
  }
}

void put_by_code(std::span<const double> probabilities, std::span<const Label> known, std::span<double> by_code) {
  for (std::size_t k = 0; k < known.size(); ++k) by_code[static_cast<std::size_t>(known[k])] = probabilities[k];
}

std::size_t n_left_out_voters(std::size_t n_trees) {
  std::size_t n = 0;
  for (std::size_t tree = 0; tree < n_trees; ++tree) n += is_left_out_voter(tree) ? 1 : 0;
  return n;
}

void check_votes(const LeftOutVotes& votes) {
  const std::size_t n = votes.labels.size(), n_sums = votes.stop_weights.size() * n * (votes.n_labels + 1);
  const auto check_size = [&](const char* name, std::size_t size, std::size_t expected) {
    require(size == expected, [&] {
      return "the votes about " + std::to_string(n) + " samples with " + std::to_string(votes.n_labels) +
             " labels and " + std::to_string(votes.stop_weights.size()) + " stop weights have " + std::to_string(size) +
             " entries of '" + name + "' instead of " + std::to_string(expected);
    });
  };
  check_size("weights", votes.weights.size(), n);
  check_size("all", votes.all.size(), n_sums);
  check_size("half", votes.half.size(), n_sums);
  require(n == 0 || !votes.held.empty(), [&] {
    return "there are votes about " + std::to_string(n) + " samples, but the list of held labels is empty";
  });
  const auto check_labels = [&](const char* name, std::span<const Label> labels) {
    for (std::size_t i = 0; i < labels.size(); ++i) {
      require(labels[i] >= 0 && static_cast<std::size_t>(labels[i]) < votes.n_labels, [&] {
        return "entry " + std::to_string(i) + " of '" + name + "': label " + std::to_string(labels[i]) +
               " is outside [0, " + std::to_string(votes.n_labels) + ")";
      });
    }
  };
  check_labels("held", votes.held);
  check_labels("labels", votes.labels);
}

std::vector<double> losses_of_stops(const LeftOutVotes& votes) {
  const std::size_t n_sums = votes.labels.size() * (votes.n_labels + 1);
  const std::size_t n_choosing = (votes.labels.size() + 1) / 2;
  const double spread = spread_of(votes);
  const bool tells = can_choose(votes);
  std::vector<double> result;
  for (std::size_t k = 0; k < votes.stop_weights.size(); ++k) {
    double loss = votes.stop_weights[k] > 0 ? kPriorOfStop / static_cast<double>(n_choosing) : 0.0;
    if (tells) {
      const Rows rows(votes, std::span(votes.all).subspan(k * n_sums, n_sums), 2);
      loss += rows.loss(best_log(rows, spread), spread);
    }
    result.push_back(loss);
  }
  return result;
}

FoundCalibration find_calibration(const LeftOutVotes& votes, std::size_t n_trees) {
  const Weight stop = votes.stop_weights.front();
  if (!can_calibrate(votes) || n_trees < kFewestTreesToCalibrate) return {{1.0, 0.0, stop}, {1.0, 0.0, stop}};
  const double spread = spread_of(votes);
  const double of_all = best_log(Rows(votes, votes.all), spread);
  const double of_half = best_log(Rows(votes, votes.half), spread);
  // The mean of more trees is more cautious, so it needs a greater power. The logarithm of the power is about a
  // constant minus a multiple of 1 / n_trees: the two fits, for all left-out voters and for half of them, give the
  // multiple.
  const auto n_all = static_cast<double>(n_left_out_voters(n_trees));
  double n_half = 0.0;
  for (std::size_t tree = 0; tree < n_trees; ++tree) n_half += is_half_voter(tree) ? 1.0 : 0.0;
  const double ratio = (1.0 / n_all - 1.0 / static_cast<double>(n_trees)) / (1.0 / n_half - 1.0 / n_all);
  const double step = std::clamp((of_all - of_half) * ratio, -kMostStep, kMostStep);
  return {{binary_power(of_all + step), spread, stop}, {binary_power(of_all), spread, stop}};
}

std::vector<double> probabilities_by(const LeftOutVotes& votes, const LabelCalibration& calibration) {
  const std::size_t n_labels = votes.n_labels;
  std::vector<double> result(votes.labels.size() * n_labels), of_held(votes.held.size());
  for (std::size_t i = 0; i < votes.labels.size(); ++i) {
    const auto of_sample = std::span(votes.all).subspan(i * (n_labels + 1), n_labels + 1);
    find_probabilities(of_sample.first(n_labels), of_sample.back(), votes.held, calibration, of_held);
    put_by_code(of_held, votes.held, std::span(result).subspan(i * n_labels, n_labels));
  }
  return result;
}

}  // namespace onlineforest::orderfree
