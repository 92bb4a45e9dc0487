#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "orderfree/labels/calibration.hpp"

using namespace onlineforest::orderfree;
using onlineforest::kOne;
using onlineforest::Weight;

namespace {

// Votes on samples whose true probabilities are p^power / sum of p^power, where p are the probabilities of the trees.
LeftOutVotes votes_of(double power, std::size_t n, bool half_is_worse) {
  std::mt19937 draw(7);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  LeftOutVotes votes;
  votes.n_labels = 3;
  votes.held = {0, 1, 2};
  votes.stop_weights = {0};
  for (std::size_t i = 0; i < n; ++i) {
    std::array<double, 3> p{};
    for (double& share : p) share = std::pow(uniform(draw), 3.0) + 0.01;
    const double sum = std::accumulate(p.begin(), p.end(), 0.0);
    std::array<double, 3> raised{};
    for (std::size_t c = 0; c < 3; ++c) raised[c] = std::pow(p[c] / sum, power);
    double place = uniform(draw) * std::accumulate(raised.begin(), raised.end(), 0.0);
    Label label = 0;
    while (label < 2 && place > raised[static_cast<std::size_t>(label)]) {
      place -= raised[static_cast<std::size_t>(label++)];
    }
    votes.labels.push_back(label);
    votes.weights.push_back(kOne);
    for (const double share : p) {
      votes.all.push_back(static_cast<std::uint64_t>(share / sum * 0x1p31));
      // Half of the trees vote alike, or so that the power is half the logarithm.
      const double of_half = half_is_worse ? std::sqrt(share / sum) : share / sum;
      votes.half.push_back(static_cast<std::uint64_t>(of_half * 0x1p31));
    }
    votes.all.push_back(0);
    votes.half.push_back(0);
  }
  return votes;
}

}  // namespace

TEST_CASE("the power is found that made the labels") {
  for (const double power : {0.5, 1.0, 2.0, 4.0}) {
    const LabelCalibration found = find_calibration(votes_of(power, 4000, false), 100).of_all;
    CHECK(found.power == doctest::Approx(power).epsilon(0.12));
    CHECK(found.spread == 1.0 / 4002.0);
  }
}

TEST_CASE("the power is corrected for trees that are not asked, with bounds") {
  const LeftOutVotes votes = votes_of(2.0, 4000, true);
  const double same = find_calibration(votes_of(2.0, 4000, false), 100).of_all.power;
  // Half of the trees need the power squared: more trees need less than all that were asked.
  const double fewer = find_calibration(votes, 10).of_all.power;
  const double more = find_calibration(votes, 100).of_all.power;
  CHECK(fewer < same);
  CHECK(more < same);
  CHECK(more > same / 2.72);
}

TEST_CASE("few samples, few trees or one label calibrate nothing") {
  const LeftOutVotes votes = votes_of(2.0, 19, false);
  CHECK(find_calibration(votes, 100).of_all.is_none());
  CHECK(!find_calibration(votes_of(2.0, 20, false), 100).of_all.is_none());
  CHECK(find_calibration(votes_of(2.0, 500, false), 9).of_all.is_none());
  LeftOutVotes of_one = votes_of(2.0, 500, false);
  of_one.held = {0};
  CHECK(find_calibration(of_one, 100).of_all.is_none());
}

TEST_CASE("votes of wrong size and labels out of range are refused") {
  CHECK_NOTHROW(check_votes(votes_of(2.0, 20, false)));
  const auto check_refused = [](auto change, const char* message) {
    LeftOutVotes votes = votes_of(2.0, 20, false);
    change(votes);
    CHECK_THROWS_WITH_AS(check_votes(votes), message, std::invalid_argument);
  };
  const auto wrong_size = [](const std::string& n_labels, const std::string& sizes) {
    return "the votes about 20 samples with " + n_labels + " labels and 1 stop weights have " + sizes;
  };
  check_refused([](LeftOutVotes& votes) { votes.weights.pop_back(); },
                wrong_size("3", "19 entries of 'weights' instead of 20").c_str());
  check_refused([](LeftOutVotes& votes) { votes.all.pop_back(); },
                wrong_size("3", "79 entries of 'all' instead of 80").c_str());
  check_refused([](LeftOutVotes& votes) { votes.half.push_back(0); },
                wrong_size("3", "81 entries of 'half' instead of 80").c_str());
  check_refused([](LeftOutVotes& votes) { votes.n_labels = 4; },
                wrong_size("4", "80 entries of 'all' instead of 100").c_str());
  check_refused([](LeftOutVotes& votes) { votes.labels[7] = 3; }, "entry 7 of 'labels': label 3 is outside [0, 3)");
  check_refused([](LeftOutVotes& votes) { votes.held = {-1, 0}; }, "entry 0 of 'held': label -1 is outside [0, 3)");
  check_refused([](LeftOutVotes& votes) { votes.held.clear(); },
                "there are votes about 20 samples, but the list of held labels is empty");
}

TEST_CASE("every second sample of votes decides about stop weights, which should be small") {
  const LeftOutVotes one = votes_of(2.0, 400, false);
  LeftOutVotes votes = one;
  votes.stop_weights = {0, 10 * kOne, 40 * kOne};
  for (int k = 0; k < 2; ++k) {
    votes.all.insert(votes.all.end(), one.all.begin(), one.all.end());
    votes.half.insert(votes.half.end(), one.half.begin(), one.half.end());
  }
  CHECK_NOTHROW(check_votes(votes));
  const std::vector<double> losses = losses_of_stops(votes);
  CHECK(losses[1] == losses[0] + 256.0 / 200.0);
  CHECK(losses[2] == losses[1]);
  const auto give_all = [&](std::size_t first) {  // to the true label, with the second stop weight
    for (std::size_t i = first; i < 400; i += 2) {
      for (std::size_t c = 0; c < 3; ++c) {
        votes.all[(400 + i) * 4 + c] = static_cast<Label>(c) == votes.labels[i] ? 1U << 31 : 0;
      }
    }
  };
  give_all(1);
  CHECK(losses_of_stops(votes) == losses);
  give_all(0);
  CHECK(losses_of_stops(votes)[1] < losses[0] - 99.0);
  LeftOutVotes few = votes_of(2.0, 19, false);
  few.stop_weights = {20 * kOne};
  CHECK(losses_of_stops(few) == std::vector<double>{256.0 / 10.0});
}

TEST_CASE("a few samples of rare labels choose no stop weight") {
  LeftOutVotes votes = votes_of(2.0, 200, false);
  votes.stop_weights = {40 * kOne};
  std::ranges::fill(votes.labels, 2);
  for (std::size_t i = 1; i < 200; i += 2) votes.labels[i] = 1;  // these do not choose
  for (const std::size_t i : {10U, 20U, 30U}) votes.labels[i] = i == 20 ? 0 : 1;
  CHECK(losses_of_stops(votes) == std::vector<double>{256.0 / 100.0});
  votes.labels[40] = 0;
  CHECK(losses_of_stops(votes)[0] > 256.0 / 100.0 + 1.0);
}

TEST_CASE("a weight counts like copies") {
  LeftOutVotes weighted = votes_of(2.0, 100, false), copied = weighted;
  for (std::size_t i = 0; i < 100; ++i) weighted.weights[i] = kOne * (1 + static_cast<Weight>(i % 3));
  for (std::size_t i = 0; i < 100; ++i) {
    for (std::size_t k = 0; k < i % 3; ++k) {
      copied.labels.push_back(copied.labels[i]);
      copied.weights.push_back(kOne);
      for (std::size_t c = 0; c < 4; ++c) {
        copied.all.push_back(copied.all[i * 4 + c]);
        copied.half.push_back(copied.half[i * 4 + c]);
      }
    }
  }
  const double of_copies = find_calibration(copied, 100).of_all.power;
  CHECK(find_calibration(weighted, 100).of_all.power == doctest::Approx(of_copies).epsilon(0.02));
}

TEST_CASE("probabilities do not depend on the order of labels") {
  std::mt19937 draw(3);
  std::vector<Label> known(40);
  std::iota(known.begin(), known.end(), 0);
  std::vector<std::uint64_t> masses(40);
  for (std::uint64_t& mass : masses) mass = draw() % 3 == 0 ? 0 : draw();
  std::vector<double> expected(40), got(40);
  const LabelCalibration calibration{2.7, 0.003};
  find_probabilities(masses, 12345, known, calibration, {}, expected);
  CHECK(std::accumulate(expected.begin(), expected.end(), 0.0) == doctest::Approx(1.0));
  for (int k = 0; k < 20; ++k) {
    std::vector<std::size_t> order(40);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::shuffle(order, draw);
    std::vector<std::uint64_t> moved(40);
    for (std::size_t c = 0; c < 40; ++c) moved[order[c]] = masses[c];
    find_probabilities(moved, 12345, known, calibration, {}, got);
    for (std::size_t c = 0; c < 40; ++c) CHECK(got[order[c]] == expected[c]);
  }
}

TEST_CASE("a calibration out of range is refused") {
  CHECK_NOTHROW(check_calibration({}));
  CHECK_NOTHROW(check_calibration({kLeastPower, 0.0}));
  CHECK_NOTHROW(check_calibration({kMostPower, kMostSpread}));
  CHECK_THROWS_WITH(check_calibration({0.03, 0.0}), "power must be in [0.03125, 128], got 0.03");
  CHECK_THROWS_WITH(check_calibration({1.0, 1.5}), "spread must be in [0, 1], got 1.5");
  CHECK_THROWS_WITH(check_calibration({1.0, 0.0, -1}), "stop_weight must be in [0, 4.5036e+15], got -1");
  for (const double power : {0.0, -1.0, 0.03, 129.0, std::nan("")}) {
    CHECK_THROWS_AS(check_calibration({power, 0.0}), std::invalid_argument);
  }
  for (const double spread : {-1e-9, 1.1, std::nan("")}) {
    CHECK_THROWS_AS(check_calibration({1.0, spread}), std::invalid_argument);
  }
}
