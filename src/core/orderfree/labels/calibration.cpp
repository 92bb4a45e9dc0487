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
// Strength of the penalty that pulls the level power towards 0, in samples, and how much the log loss must decrease for
// it to be positive.
constexpr double kPriorOfLevels = 1.0, kLeastGain = 2.0;
constexpr std::size_t kRowsAtOnce = 64;           // rows whose powers one loop computes, so that it can be vectorised
constexpr double kMostStep = 1.4426950408889634;  // largest step of the extrapolation: a factor of e
// Penalty of every positive stop weight, divided by the number of calibrators that choose: where they are few, a
// positive one must be much better than 0.
constexpr double kPriorOfStop = 256.0;
// Fewer calibrators that choose, beside those of the most frequent label, tell nothing about a stop weight: one or two
// samples of a rare label would choose it by chance.
constexpr std::size_t kFewestOthers = 4;

[[nodiscard]] std::int64_t parts_of(double share) {
  const double parts = share * kParts + 0.5;
  return static_cast<std::int64_t>(parts);
}

// The binary logarithm of mass / largest, where `largest` is the largest mass of the row; at least kLeastLog.
[[nodiscard]] double log_of(double mass, double largest) {
  return mass > 0.0 ? std::max(binary_log(mass / largest), kLeastLog) : kLeastLog;
}

// The masses of one sample, as logarithms. All labels without mass and evidence have the same probability, so they are
// one group.
struct Row {
  std::size_t begin, end;  // range of the logarithms of labels with mass or evidence
  std::size_t true_at;     // index of the logarithm of the true label; `end` if that label has neither
  double log_of_others;    // logarithm of each other label
  double n_others;         // number of other labels
  double weight;
};

// The rows to which a power is fitted: every `step`-th calibrator. `sums` are those of one stop weight.
class Rows {
 public:
  Rows(const LeftOutVotes& votes, std::span<const std::uint64_t> sums, std::size_t step = 1)
      : n_known_(votes.held.size()), has_evidence_(!votes.evidence.empty()) {
    const std::size_t n_labels = votes.n_labels;
    for (std::size_t i = 0; i < votes.labels.size(); i += step) {
      const std::span<const std::uint64_t> masses = sums.subspan(i * (n_labels + 1), n_labels);
      const double others = static_cast<double>(sums[(i + 1) * (n_labels + 1) - 1]) / static_cast<double>(n_known_);
      const double largest = static_cast<double>(std::ranges::max(masses)) + others;
      Row row{logs_.size(), 0, kNoLog, log_of(others, largest), 0.0, multiplicity(votes.weights[i])};
      for (const Label label : votes.held) {
        const std::uint64_t mass = masses[static_cast<std::size_t>(label)];
        const double evidence = has_evidence() ? votes.evidence[i * n_labels + static_cast<std::size_t>(label)] : 0.0;
        if (mass > 0 || evidence > 0.0) {
          if (has_evidence()) evidence_.push_back(evidence);
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

  [[nodiscard]] bool has_evidence() const { return has_evidence_; }

  // The sum of log losses plus the penalty on the power, for a power given by its binary logarithm. Returns infinity
  // once the sum exceeds `most`.
  [[nodiscard]] double loss(double log_of_power, double spread, double level_power, double most = kInfinity) const {
    const double power = binary_power(log_of_power), even = spread / static_cast<double>(n_known_);
    double sum = 0.0;
    std::vector<double> raised, shifts;
    for (std::size_t begin = 0; begin < rows_.size(); begin += kRowsAtOnce) {
      const std::span<const Row> rows = std::span(rows_).subspan(begin, std::min(kRowsAtOnce, rows_.size() - begin));
      const std::size_t first = rows.front().begin;
      raised.resize(rows.back().end - first);
      for (std::size_t i = 0; i < raised.size(); ++i) raised[i] = power * logs_[first + i];
      shifts.assign(rows.size(), 0.0);  // the greatest exponent of each row; 0 without evidence
      if (level_power > 0.0) add_evidence(rows, level_power, power, raised, shifts);
      for (double& each : raised) each = binary_power(each);
      for (std::size_t k = 0; k < rows.size(); ++k) {
        const Row& row = rows[k];
        std::int64_t parts = 0;
        for (std::size_t i = row.begin; i < row.end; ++i) parts += parts_of(raised[i - first]);
        const double of_others = row.n_others > 0.0 ? binary_power(power * row.log_of_others - shifts[k]) : 0.0;
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
  // Adds the evidence to the exponents of some rows, and subtracts from them the greatest one of each row, so that the
  // greatest power is 1.
  void add_evidence(std::span<const Row> rows, double level_power, double power, std::span<double> exponents,
                    std::span<double> shifts) const {
    const std::size_t first = rows.front().begin;
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const Row& row = rows[k];
      double greatest = row.n_others > 0.0 ? power * row.log_of_others : -kInfinity;
      for (std::size_t i = row.begin; i < row.end; ++i) {
        exponents[i - first] += level_power * evidence_[i];
        greatest = std::max(greatest, exponents[i - first]);
      }
      for (std::size_t i = row.begin; i < row.end; ++i) exponents[i - first] -= greatest;
      shifts[k] = greatest;
    }
  }

  std::size_t n_known_;
  bool has_evidence_;
  std::vector<double> logs_, evidence_;  // by label; no evidence if no feature is categorical
  std::vector<Row> rows_;
};

// Searches for the least loss between two numbers, by golden sections.
template <class Loss>
[[nodiscard]] double least_between(double low, double high, int n_steps, Loss loss) {
  constexpr double kSection = 0.6180339887498949;
  double left = high - kSection * (high - low), right = low + kSection * (high - low);
  double at_left = loss(left), at_right = loss(right);
  for (int step = 0; step < n_steps; ++step) {
    if (at_left <= at_right) {
      high = std::exchange(right, left);
      at_right = at_left;
      left = high - kSection * (high - low);
      at_left = loss(left);
    } else {
      low = std::exchange(left, right);
      at_left = at_right;
      right = low + kSection * (high - low);
      at_right = loss(right);
    }
  }
  return at_left <= at_right ? left : right;
}

// The binary logarithm of the power of least loss: the best whole number, then a golden-section search around it.
[[nodiscard]] double best_log(const Rows& rows, double spread, double level_power = 0.0) {
  double best = 0.0, least = kInfinity;
  for (const double log : kWholeLogs) {
    const double loss = rows.loss(log, spread, level_power, least);
    if (loss < least || (loss == least && log < best)) {
      least = loss;
      best = log;
    }
  }
  return least_between(std::max(best - 1.0, kLeastLogOfPower), std::min(best + 1.0, kMostLogOfPower), 12,
                       [&](double log) { return rows.loss(log, spread, level_power); });
}

// The level power of least loss, with the best power for each; 0 if the loss decreases too little.
[[nodiscard]] double best_level_power(const Rows& rows, double spread) {
  if (!rows.has_evidence()) return 0.0;
  const auto loss = [&](double level_power) {
    return rows.loss(best_log(rows, spread, level_power), spread, level_power) +
           kPriorOfLevels * level_power * level_power / 2.0;
  };
  const double best = least_between(0.0, kMostLevelPower, 8, loss);
  return loss(best) + kLeastGain < loss(0.0) ? best : 0.0;
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
  check("level_power", calibration.level_power, 0.0, kMostLevelPower);
  check("stop_weight", static_cast<double>(calibration.stop_weight), 0.0, static_cast<double>(kMostWeight));
}

void find_probabilities(std::span<const std::uint64_t> masses, std::uint64_t rest, std::span<const Label> known,
                        const LabelCalibration& calibration, std::span<const double> evidence,
                        std::span<double> probabilities) {
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
  // Labels without mass and evidence have the same probability, so it is computed once.
  const auto is_other = [&](Label label) {
    const auto at = static_cast<std::size_t>(label);
    return masses[at] == 0 && (calibration.level_power == 0.0 || evidence[at] == 0.0);
  };
  const auto exponent = [&](std::uint64_t mass) {
    return calibration.power * log_of(static_cast<double>(mass) + others, largest);
  };
  double greatest = -kInfinity;
  for (std::size_t k = 0; k < known.size(); ++k) {
    const auto at = static_cast<std::size_t>(known[k]);
    if (is_other(known[k])) {
      if (n_others++ == 0) greatest = std::max(greatest, exponent(0));
    } else {
      probabilities[k] = exponent(masses[at]);
      if (calibration.level_power > 0.0) probabilities[k] += calibration.level_power * evidence[at];
      greatest = std::max(greatest, probabilities[k]);
    }
  }
  // The greatest exponent is 0 without evidence. Its subtraction makes the greatest power 1.
  for (std::size_t k = 0; k < known.size(); ++k) {
    if (is_other(known[k])) continue;
    probabilities[k] = binary_power(probabilities[k] - greatest);
    parts += parts_of(probabilities[k]);
  }
  const double of_others = n_others > 0 ? binary_power(exponent(0) - greatest) : 0.0;
  const double total = static_cast<double>(parts) / kParts + static_cast<double>(n_others) * of_others;
  const double even = calibration.spread / static_cast<double>(known.size());
  for (std::size_t k = 0; k < known.size(); ++k) {
    const double share = is_other(known[k]) ? of_others : probabilities[k];
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
  if (!votes.evidence.empty()) check_size("evidence", votes.evidence.size(), n * votes.n_labels);
  for (const double each : votes.evidence) {
    require(each >= 0.0 && each < kInfinity,
            [&] { return "evidence must be finite and not negative, got " + std::to_string(each); });
  }
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
      loss += rows.loss(best_log(rows, spread), spread, 0.0);
    }
    result.push_back(loss);
  }
  return result;
}

FoundCalibration find_calibration(const LeftOutVotes& votes, std::size_t n_trees) {
  const Weight stop = votes.stop_weights.front();
  if (!can_calibrate(votes) || n_trees < kFewestTreesToCalibrate) return {{1.0, 0.0, stop, 0.0}, {1.0, 0.0, stop, 0.0}};
  const double spread = spread_of(votes);
  const Rows rows(votes, votes.all);
  const double of_all = best_log(rows, spread);
  const double of_half = best_log(Rows(votes, votes.half), spread);
  // The mean of more trees is more cautious, so it needs a greater power. The logarithm of the power is about a
  // constant minus a multiple of 1 / n_trees: the two fits, for all left-out voters and for half of them, give the
  // multiple.
  const auto n_all = static_cast<double>(n_left_out_voters(n_trees));
  double n_half = 0.0;
  for (std::size_t tree = 0; tree < n_trees; ++tree) n_half += is_half_voter(tree) ? 1.0 : 0.0;
  const double ratio = (1.0 / n_all - 1.0 / static_cast<double>(n_trees)) / (1.0 / n_half - 1.0 / n_all);
  const double step = std::clamp((of_all - of_half) * ratio, -kMostStep, kMostStep);
  const double level_power = best_level_power(rows, spread);
  const double log = level_power > 0.0 ? best_log(rows, spread, level_power) : of_all;
  return {{binary_power(log + step), spread, stop, level_power}, {binary_power(log), spread, stop, level_power}};
}

std::vector<double> probabilities_by(const LeftOutVotes& votes, const LabelCalibration& calibration) {
  const std::size_t n_labels = votes.n_labels;
  std::vector<double> result(votes.labels.size() * n_labels), of_held(votes.held.size());
  for (std::size_t i = 0; i < votes.labels.size(); ++i) {
    const auto of_sample = std::span(votes.all).subspan(i * (n_labels + 1), n_labels + 1);
    const auto evidence = std::span(votes.evidence).subspan(votes.evidence.empty() ? 0 : i * n_labels);
    find_probabilities(of_sample.first(n_labels), of_sample.back(), votes.held, calibration, evidence, of_held);
    put_by_code(of_held, votes.held, std::span(result).subspan(i * n_labels, n_labels));
  }
  return result;
}

}  // namespace onlineforest::orderfree
