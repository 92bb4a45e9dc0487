// A libFuzzer target: restoring must reject a state or give a forest that keeps all invariants. Also holds the mutator
// of states.
//
// Unexpected exceptions are not caught, so that the abort shows where they were thrown.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <type_traits>

#include "base/rng.hpp"
#include "byte_state.hpp"
#include "forget_edges.hpp"
#include "mondrian/state/archive.hpp"
#include "mondrian/state/invariants.hpp"
#include "orderfree/labels/forest.hpp"
#include "orderfree/numbers/forest.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace onlineforest::fuzz {

namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20;
// Larger forests are restored but not used, to keep the number of runs per second high. Forests that run trials have a
// lower limit, because trials are slow and do not depend on what was restored.
constexpr std::size_t kMostPoints = 300, kMostPointsOfTrial = 40, kMostTrees = 10, kMostFeatures = 64;
constexpr std::int32_t kMostClasses = 1000;
constexpr std::size_t kMostSeen = std::size_t{1}
                                  << 50;  // below the limit of the core, so that more points can be learned

void expect(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "violated: %s\n", what);
  std::abort();
}

std::unique_ptr<mondrian::Forest> restore(const mondrian::ForestState& state) {
  return mondrian::Archive::restore(state, Call(), kMostBytes);
}

std::unique_ptr<orderfree::LabelForest> restore(const orderfree::LabelForest::State& state) {
  return std::make_unique<orderfree::LabelForest>(state, kMostBytes);
}

std::unique_ptr<orderfree::NumberForest> restore(const orderfree::NumberForest::State& state) {
  return std::make_unique<orderfree::NumberForest>(state, kMostBytes);
}

mondrian::ForestState state_of(const mondrian::Forest& forest) { return mondrian::Archive::save(forest); }

template <OrderFree Forest>
auto state_of(const Forest& forest) {
  return forest.save();
}

template <class Forest>
Arrays saved(const Forest& forest) {
  return to_arrays(state_of(forest));
}

// Compares numbers: 0 equals -0, and NaN (which an unused option may be) equals NaN.
bool are_same(const Arrays& a, const Arrays& b) {
  const auto same = [](auto x, auto y) { return x == y || (x != x && y != y); };
  return std::ranges::equal(a, b, [&](const NamedArray& one, const NamedArray& other) {
    return std::visit(
        [&](const auto& numbers) {
          return std::ranges::equal(numbers, std::get<std::remove_cvref_t<decltype(numbers)>>(other.numbers), same);
        },
        one.numbers);
  });
}

bool has_few_classes(const mondrian::Forest& forest) { return forest.n_classes() <= kMostClasses; }
bool has_few_classes(const orderfree::LabelForest& forest) { return forest.n_labels() <= kMostClasses; }
bool has_few_classes(const orderfree::NumberForest&) { return true; }

// Whether more samples can come: the total weight has a bound.
template <OrderFree Forest>
bool is_light(const Forest& forest) {
  const std::vector<Weight> weights = state_of(forest).weights;
  return std::accumulate(weights.begin(), weights.end(), Weight{0}) <= kMostWeight / 2;
}

bool is_usable(const mondrian::Forest& forest) {
  const mondrian::ForestOptions& options = forest.options();
  const bool makes_trials = options.weight_rule == mondrian::WeightRule::kLearned || options.learns_leaf_discount;
  return options.n_trees <= kMostTrees && options.n_features <= kMostFeatures && has_few_classes(forest) &&
         forest.n_seen() <= kMostSeen && forest.n_samples() <= (makes_trials ? kMostPointsOfTrial : kMostPoints);
}

template <OrderFree Forest>
bool is_usable(const Forest& forest) {
  const orderfree::Options& options = forest.options();
  return options.n_trees <= kMostTrees && options.layout.width() <= kMostFeatures && has_few_classes(forest) &&
         forest.n_seen() <= kMostSeen && forest.n_samples() <= kMostPoints && is_light(forest);
}

std::vector<float> stored_rows(const mondrian::Forest& forest) {
  return forest.read([](const mondrian::Forest& f) {
    const auto rows = f.points().rows();
    return std::vector<float>(rows.begin(), rows.end());
  });
}

template <OrderFree Forest>
std::vector<float> stored_rows(const Forest& forest) {
  return forest.save().rows;
}

std::size_t n_numeric(const mondrian::Forest& forest) { return forest.n_features(); }

template <OrderFree Forest>
std::size_t n_numeric(const Forest& forest) {
  return forest.options().layout.n_numeric();
}

// Two stored rows, and rows far from all stored ones, of other levels.
template <class Forest>
std::vector<float> some_rows(const Forest& forest) {
  const std::size_t width = forest.width(), n_numbers = n_numeric(forest);
  std::vector<float> rows = stored_rows(forest);
  rows.resize(std::min(rows.size(), 2 * width));
  for (const float x : {0.5f, -1e3f, std::numeric_limits<float>::max()}) {
    rows.insert(rows.end(), n_numbers, x);
    rows.insert(rows.end(), width - n_numbers, std::min(std::abs(x), 1.5f));
  }
  return rows;
}

void check_predictions(const mondrian::Forest& forest) {
  const std::size_t n_classes = static_cast<std::size_t>(forest.n_classes());
  const std::vector<double> predicted = forest.predict(some_rows(forest), Call(1));
  for (std::size_t i = 0; i < predicted.size(); i += n_classes) {
    double sum = 0.0;
    for (const double p : std::span(predicted).subspan(i, n_classes)) {
      expect(p >= 0.0, "probabilities are at least 0");
      sum += p;
    }
    expect(std::abs(sum - 1.0) < 1e-6, "probabilities add up to 1");
  }
}

void check_predictions(const orderfree::LabelForest& forest) {
  const orderfree::LabelForest::State state = forest.save();
  const bool knows_a_label =
      !state.serials.empty() || std::ranges::count(state.ledger.are_declared, 0) < forest.n_labels();
  const orderfree::LeftOutVotes votes = forest.left_out_votes(0, 1000, {0, 1}, Call(1));
  const auto found = orderfree::find_calibration(votes, forest.options().n_trees).of_all;
  for (const orderfree::LabelCalibration& calibration :
       {orderfree::LabelCalibration{}, found, {2.5, 0.01}, {2.5, 0.01, 0, 1.5}}) {
    const auto [hashes, predicted] = forest.predict(some_rows(forest), calibration, Call(1));
    expect(hashes.empty() != knows_a_label, "a label is known if it is declared or held");
    for (std::size_t i = 0; i < predicted.size(); i += hashes.size()) {
      double sum = 0.0;
      for (const double p : std::span(predicted).subspan(i, hashes.size())) {
        expect(p >= 0.0, "probabilities are at least 0");
        sum += p;
      }
      expect(std::abs(sum - 1.0) < 1e-6, "probabilities add up to 1");
    }
  }
}

void check_predictions(const orderfree::NumberForest& forest) {
  for (const Weight stop_weight : {Weight{0}, 10 * kOne}) {
    for (const auto& [mean, within, between] : forest.predict(some_rows(forest), {stop_weight, 0.0, {}}, Call(1))) {
      expect(std::isfinite(mean), "means are finite");
      expect(within >= 0.0 && between >= 0.0, "variances are at least 0");
    }
  }
  for (const auto& [mean, within, between] : forest.predict_left_out(0, Call(1)).moments) {
    expect(std::isnan(mean) || (within >= 0.0 && between >= 0.0), "variances of left-out samples are at least 0");
  }
}

bool are_same(const orderfree::Labels::Columns& a, const orderfree::Labels::Columns& b) {
  return a.counts_end == b.counts_end && a.label == b.label && a.count == b.count;
}

bool are_same(const orderfree::Numbers::Columns& a, const orderfree::Numbers::Columns& b) {
  return a.mean == b.mean && a.squares == b.squares;
}

template <class Target>
bool are_same(const orderfree::TreeTable<Target>& a, const orderfree::TreeTable<Target>& b) {
  return a.parent == b.parent && a.left == b.left && a.right == b.right && a.cell == b.cell &&
         a.threshold == b.threshold && a.missing_left == b.missing_left && a.is_of_levels == b.is_of_levels &&
         a.weight == b.weight && a.surrogates_end == b.surrogates_end && a.surrogates == b.surrogates &&
         are_same(a.columns, b.columns);
}

// The trees must be those of a forest that learns the same samples in another order.
template <OrderFree Forest>
void check_invariants(const Forest& forest) {
  if (!is_usable(forest)) return;
  const auto state = forest.save();
  const std::size_t width = state.options.layout.width();
  std::vector<float> rows;
  auto values = state.values;
  values.clear();
  const std::vector<Weight> weights(state.weights.rbegin(), state.weights.rend());
  for (std::size_t i = state.sample_of.size(); i-- > 0;) {
    const auto sample = static_cast<std::size_t>(state.sample_of[i]);
    const auto row = state.rows.begin() + static_cast<std::ptrdiff_t>(sample * width);
    rows.insert(rows.end(), row, row + static_cast<std::ptrdiff_t>(width));
    values.push_back(state.values[sample]);
  }
  orderfree::Options options = state.options;
  options.keep = {};
  Forest fresh(options);
  if constexpr (kKindOf<Forest> == Kind::kOrderFreeLabels) {
    fresh.set_labels(state.ledger.hashes, state.ledger.are_declared);
  }
  fresh.learn(rows, values, weights, Call(1));
  for (std::size_t t = 0; t < options.n_trees; ++t) {
    expect(are_same(forest.table(t, Call(1)), fresh.table(t, Call(1))), "the trees are those of the samples");
  }
}

std::vector<Weight> some_weights(std::size_t n) {
  std::vector<Weight> weights;
  for (std::size_t i = 0; i < n; ++i) weights.push_back(kOne / 2 + static_cast<Weight>(i) * 1000);
  return weights;
}

void learn(mondrian::Forest& forest, const std::vector<float>& rows, bool one_by_one) {
  const std::int32_t n_classes = std::max(forest.n_classes(), 2);
  std::vector<mondrian::Label> labels(rows.size() / forest.width());
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = i % 2 == 0 ? 0 : n_classes - 1;
  forest.learn(rows, labels, n_classes, Call(), one_by_one);
}

void learn(orderfree::LabelForest& forest, const std::vector<float>& rows, bool /*one_by_one*/) {
  if (forest.n_labels() == 0) forest.set_labels(std::vector<orderfree::Word>{7}, std::vector<std::uint8_t>{0});
  std::vector<orderfree::Label> labels(rows.size() / forest.width());
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = i % 2 == 0 ? 0 : forest.n_labels() - 1;
  forest.learn(rows, labels, some_weights(labels.size()), Call());
}

void learn(orderfree::NumberForest& forest, const std::vector<float>& rows, bool /*one_by_one*/) {
  std::vector<double> values(rows.size() / forest.width());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 2 == 0 ? 1.0 : 1e6;
  forest.learn(rows, values, some_weights(values.size()), Call());
}

// Learns a batch, learns it again one by one, forgets one point. Calls check() after each step.
template <class Forest, class Check>
void use(Forest& forest, Check check) {
  const std::vector<float> rows = some_rows(forest);
  for (const bool one_by_one : {false, true}) {
    learn(forest, rows, one_by_one);
    check();
  }
  const std::vector<Serial> serials = forest.serials();
  if (!serials.empty()) forest.forget(std::span(&serials[serials.size() / 2], 1), Call(1));
  check();
}

template <class Forest>
void check_restored(Forest& forest) {
  check_invariants(forest);
  const auto twin = restore(state_of(forest));
  expect(are_same(saved(*twin), saved(forest)), "saving, restoring and saving again gives the same state");
  if (!is_usable(forest)) return;
  check_predictions(forest);
  use(forest, [&] { check_invariants(forest); });
  check_predictions(forest);
  use(*twin, [] {});
  expect(are_same(saved(*twin), saved(forest)), "a restored forest learns like the original");
  restore(state_of(forest));
}

// A state with points of arrivals only where they say something.
mondrian::ForestState plain(mondrian::ForestState state) {
  bool are_alone = true;
  for (std::size_t i = 0; i < state.sample_of.size(); ++i) are_alone &= state.sample_of[i] == static_cast<Slot>(i);
  if (are_alone) state.sample_of.clear();
  return state;
}

void check_mondrian_state(const Arrays& arrays) {
  std::unique_ptr<mondrian::Forest> forest;
  mondrian::ForestState state;
  try {
    const ArraySource source(arrays);
    state = mondrian::read_state(source);
    forest = restore(state);
  } catch (const std::invalid_argument&) {  // Not std::bad_alloc: memory is counted before it is allocated.
    forget_edges();
    return;
  }
  expect(state.measures.size() > 1 || are_same(saved(*forest), to_arrays(plain(std::move(state)))),
         "saving a restored forest gives its state");
  check_restored(*forest);
}

template <OrderFree Forest>
void check_order_free_state(const Arrays& arrays) {
  std::unique_ptr<Forest> forest;
  try {
    const ArraySource source(arrays);
    using Target = std::conditional_t<kKindOf<Forest> == Kind::kOrderFreeLabels, orderfree::Labels, orderfree::Numbers>;
    forest = restore(orderfree::read_state<Target>(source));
  } catch (const std::invalid_argument&) {
    forget_edges();
    return;
  }
  check_restored(*forest);
}

// Changes numbers of a state, most often one.
class Mutation {
 public:
  Mutation(Arrays& arrays, unsigned seed) : arrays_(arrays), rng_(seed, 0) {}

  void apply() {
    do {
      const std::size_t k = pick(arrays_.size());
      std::visit([&](auto& numbers) { change(numbers, k); }, arrays_[k].numbers);
    } while (pick(3) == 0);
  }

 private:
  std::size_t pick(std::size_t n) { return static_cast<std::size_t>(rng_.next() % n); }

  template <class T>
  void change(std::vector<T>& numbers, std::size_t k) {
    if (numbers.empty()) {
      insert(numbers, k, 0, another<T>(numbers));
      return;
    }
    const std::size_t i = pick(numbers.size());
    switch (pick(10)) {
      case 0:
        return swap_records(numbers.size(), i, pick(numbers.size()));
      case 1:
        return std::swap(numbers[i], numbers[pick(numbers.size())]);
      case 2:
        return insert(numbers, k, i, T(numbers[i]));
      case 3:
        return erase(numbers, k, i);
      case 4:
        return change_bytes(numbers);
      case 5:
        return shift_two(numbers, i);
      case 6:
        numbers[i] = another(numbers);
        return;
      default:
        numbers[i] = odd(numbers[i]);
    }
  }

  // Swaps entries i and j in all arrays of this length: arrays of nodes, of trees or of points.
  void swap_records(std::size_t length, std::size_t i, std::size_t j) {
    for (NamedArray& array : arrays_) {
      std::visit([&](auto& numbers) { numbers.size() == length ? std::swap(numbers[i], numbers[j]) : void(); },
                 array.numbers);
    }
  }

  template <class T>
  void insert(std::vector<T>& numbers, std::size_t k, std::size_t i, T number) {
    if (auto* size = size_around(k, i)) ++*size;
    numbers.insert(numbers.begin() + static_cast<std::ptrdiff_t>(i), number);
  }

  template <class T>
  void erase(std::vector<T>& numbers, std::size_t k, std::size_t i) {
    if (auto* size = size_around(k, i)) --*size;
    numbers.erase(numbers.begin() + static_cast<std::ptrdiff_t>(i));
  }

  // The size of the list that contains entry i of array k, if array k joins lists. Array k + 1 then holds their sizes.
  std::uint64_t* size_around(std::size_t k, std::size_t i) {
    if (k + 1 == arrays_.size() || arrays_[k + 1].name != arrays_[k].name + ".sizes") return nullptr;
    for (std::uint64_t& size : std::get<std::vector<std::uint64_t>>(arrays_[k + 1].numbers)) {
      if (i <= size) return &size;
      i -= size;
    }
    return nullptr;
  }

  // libFuzzer's own mutation, which uses values that the program compared with.
  template <class T>
  void change_bytes(std::vector<T>& numbers) {
    const std::size_t n_bytes = numbers.size() * sizeof(T);
    LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(numbers.data()), n_bytes, n_bytes);
  }

  // Adds one step to entry i of two arrays, such as the links to both children.
  template <class T>
  void shift_two(std::vector<T>& numbers, std::size_t i) {
    const T step = static_cast<T>(static_cast<int>(pick(17)) - 8);
    for (std::vector<T>* array : {&numbers, &any_array<T>()}) {
      if (i < array->size()) (*array)[i] = sum((*array)[i], step);
    }
  }

  template <class T>
  static T sum(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return a + b;
    } else {
      return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));  // may overflow
    }
  }

  // One of these numbers, or of another array of their type.
  template <class T>
  T another(const std::vector<T>& numbers) {
    const std::vector<T>& from = pick(2) == 0 ? numbers : any_array<T>();
    return from.empty() ? T() : from[pick(from.size())];
  }

  template <class T>
  std::vector<T>& any_array() {
    for (;;) {
      if (auto* numbers = std::get_if<std::vector<T>>(&arrays_[pick(arrays_.size())].numbers)) return *numbers;
    }
  }

  // A likely special case.
  template <class T>
  T odd(T now) {
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_floating_point_v<T>) {
      const T power = std::pow(T(10), static_cast<T>(pick(640)) - T(320));
      return any_of<T>({0, 1, power, -power, -now, now + 1, now - 1, 2 * now, now / 2, 1 / now,
                        std::nextafter(now, Limits::max()), std::nextafter(now, Limits::lowest()), Limits::max(),
                        Limits::denorm_min(), Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()});
    } else {
      const T minus_one = static_cast<T>(-1);
      return any_of<T>({0, 1, minus_one, sum(now, T(1)), sum(now, minus_one), sum(now, now), T(now / 2),
                        static_cast<T>(pick(100)), static_cast<T>(std::uint64_t{1} << pick(64)), Limits::min(),
                        Limits::max(), Limits::max() / 2});
    }
  }

  template <class T>
  T any_of(std::initializer_list<T> all) {
    return all.begin()[pick(all.size())];
  }

  Arrays& arrays_;
  Rng rng_;
};

}  // namespace

}  // namespace onlineforest::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace onlineforest;
  const auto state = fuzz::ByteState::decode({data, size});
  if (!state) return 0;
  switch (state->kind) {
    case fuzz::Kind::kMondrian:
      fuzz::check_mondrian_state(state->arrays);
      break;
    case fuzz::Kind::kOrderFreeLabels:
      fuzz::check_order_free_state<orderfree::LabelForest>(state->arrays);
      break;
    case fuzz::Kind::kOrderFreeNumbers:
      fuzz::check_order_free_state<orderfree::NumberForest>(state->arrays);
      break;
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  using namespace onlineforest;
  auto state = seed % 8 != 0 ? fuzz::ByteState::decode({data, size}) : std::nullopt;
  if (!state) return LLVMFuzzerMutate(data, size, max_size);
  fuzz::Mutation(state->arrays, seed).apply();
  const auto bytes = state->encode();
  if (bytes.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::ranges::copy(bytes, data);
  return bytes.size();
}
