// Tests which cells are missing and how they are filled in.
#include "points/completion.hpp"

#include <cmath>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "labels/label_sets.hpp"
#include "points/queries.hpp"
#include "testing.hpp"

using namespace onlineforest;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A plain reference for MissingCells: the (point, feature) pairs that are missing.
using Cells = std::set<std::pair<std::size_t, std::size_t>>;

void check_same(const PointStore<Label>& points, const Cells& cells) {
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t d = 0; d < points.n_features(); ++d) {
      CHECK(points.is_missing(static_cast<Slot>(i), d) == cells.contains({i, d}));
      CHECK(std::isfinite(points.row(static_cast<Slot>(i))[d]));
    }
  }
  for (std::size_t d = 0; d < points.n_features(); ++d) {
    std::size_t n_known = 0;
    for (std::size_t i = 0; i < points.size(); ++i) n_known += !cells.contains({i, d});
    CHECK(points.missing().is_ever_known(d) == (n_known > 0));
    for (std::size_t start = 0; start < points.size(); ++start) {
      std::size_t expected = MissingCells::kNone;
      for (std::size_t k = points.size(); k-- > 0;) {
        if (const std::size_t i = (start + k) % points.size(); !cells.contains({i, d})) expected = i;
      }
      CHECK(points.missing().find_known(d, start, points.size()) == expected);
      CHECK((expected >= start || points.missing().find_known(d, expected, expected + 1) == expected));
    }
  }
}

TEST_CASE("missing cells stay correct while points are appended and removed") {
  Rng rng(1, 0);
  constexpr std::size_t n_features = 3;
  PointStore<Label> points(n_features);
  Cells cells;
  for (int round = 0; round < 60; ++round) {
    const std::size_t n_new = static_cast<std::size_t>(rng.uniform() * 40.0);
    std::vector<float> rows(n_new * n_features);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i] = static_cast<float>(rng.uniform());
      const double share = round < 5 ? 0.0 : i % n_features == 0 ? 0.9 : 0.3;  // feature 2 is never missing
      if (i % n_features < 2 && rng.uniform() < share) {
        rows[i] = kNan;
        cells.insert({points.size() + i / n_features, i % n_features});
      }
    }
    points.append(rows, std::vector<Label>(n_new));
    std::vector<Slot> gone;
    for (std::size_t i = points.size(); i-- > 0;) {
      if (rng.uniform() < (round % 20 == 19 ? 1.0 : 0.3)) gone.push_back(static_cast<Slot>(i));
    }
    const std::vector<Move> moves = moves_after(gone, points.size());
    points.remove(gone, moves);
    for (const Move& move : moves) {
      for (std::size_t d = 0; d < n_features; ++d) {
        const std::size_t from = static_cast<std::size_t>(move.from), to = static_cast<std::size_t>(move.to);
        cells.erase({to, d});
        if (cells.contains({from, d})) cells.insert({to, d});
      }
    }
    std::erase_if(cells, [&](const auto& cell) { return cell.first >= points.size(); });
    check_same(points, cells);
    // Saved and restored, the cells are unchanged.
    const MissingCells& missing = points.missing();
    const std::vector<std::int32_t> features(missing.features().begin(), missing.features().end());
    CHECK(MissingCells::are_sound(features, missing.words(), points.size(), n_features));
    PointStore<Label> again(n_features);
    again.append(points.rows(), points.values());
    again.set_missing(features, missing.words());
    check_same(again, cells);
  }
}

TEST_CASE("inconsistent missing cells are rejected") {
  const std::vector<std::int32_t> one{0}, two{0, 1}, twice{1, 1}, back{1, 0}, beyond{3}, negative{-1};
  using Words = std::vector<MissingCells::Word>;
  CHECK(MissingCells::are_sound(one, Words{7}, 3, 3));
  CHECK(!MissingCells::are_sound(one, Words{8}, 3, 3));  // point 3 of 3
  CHECK(!MissingCells::are_sound(one, Words{}, 3, 3));
  CHECK(!MissingCells::are_sound(one, Words{1, 0}, 3, 3));
  CHECK(MissingCells::are_sound(one, Words{~MissingCells::Word{0}}, 64, 3));
  CHECK(!MissingCells::are_sound(one, Words{}, 0, 3));
  CHECK(MissingCells::are_sound({}, {}, 0, 3));
  CHECK(MissingCells::are_sound(two, Words{1, 0}, 3, 3));
  for (const auto& features : {twice, back}) CHECK(!MissingCells::are_sound(features, Words{1, 0}, 3, 3));
  for (const auto& features : {beyond, negative}) CHECK(!MissingCells::are_sound(features, Words{1}, 3, 3));
}

// Two clusters of points: feature 0 separates them, feature 1 is constant in each, feature 2 is always missing.
PointStore<Label> two_clusters() {
  PointStore<Label> points(3);
  for (int i = 0; i < 200; ++i) {
    const bool is_far = i % 2 == 1;
    const float x = (is_far ? 100.0f : 0.0f) + static_cast<float>(i) / 200.0f;
    points.append(std::vector<float>{x, i % 4 < 2 ? kNan : is_far ? 7.0f : 5.0f, kNan}, std::vector<Label>{0});
  }
  return points;
}

TEST_CASE("completions take values of near points that have the feature") {
  const PointStore<Label> points = two_clusters();
  Donors donors(3);
  for (int i = 0; i < 20; ++i) {
    Rng rng(2, static_cast<std::uint64_t>(i));
    donors.draw(points, points.size(), rng);
    const float row[] = {i % 2 == 0 ? 0.3f : 100.2f, kNan, kNan};
    donors.compare(row);
    std::vector<float> values(8);
    CHECK(donors.find_values(1, points, values));
    for (const float value : values) CHECK(value == (i % 2 == 0 ? 5.0f : 7.0f));
    CHECK(!donors.find_values(2, points, values));  // missing in every point
    for (const float value : values) CHECK(value == 0.0f);
  }
}

TEST_CASE("only rows whose missing features are known of some point get several completions") {
  const PointStore<Label> points = two_clusters();
  const std::vector<float> rows{1.0f, kNan, 3.0f, 1.0f, 2.0f, 3.0f, 1.0f, 2.0f, kNan, kNan, kNan, kNan};
  const Completed completed(rows, points, Rng(3, 0));
  CHECK(!completed.is_plain());
  CHECK(completed.n_rows() == 4);
  CHECK(completed.end(0) - completed.begin(0) == kCompletions);
  CHECK(completed.end(1) - completed.begin(1) == 1);
  CHECK(completed.end(2) - completed.begin(2) == 1);  // feature 2 is missing in every point
  CHECK(completed.end(3) - completed.begin(3) == kCompletions);
  CHECK(completed.end(3) == completed.size());
  const Queries queries = completed.queries(0, completed.size());
  CHECK(!queries.are_plain());
  for (std::size_t row = 0; row < 4; ++row) {
    for (std::size_t i = completed.begin(row); i < completed.end(row); ++i) {
      for (std::size_t d = 0; d < 3; ++d) {
        const float given = rows[row * 3 + d];
        CHECK(std::isfinite(completed.row(i)[d]));
        CHECK((std::isnan(given) ? std::isnan(queries.given[i * 3 + d]) : completed.row(i)[d] == given));
      }
    }
  }
  const std::vector<float> whole{1.0f, 2.0f, 3.0f};
  const Completed plain(whole, points, Rng(3, 0));
  CHECK(plain.is_plain());
  CHECK(plain.size() == 1);
  CHECK(plain.row(0) == whole.data());
  CHECK(plain.queries(0, 1).are_plain());
}

}  // namespace
