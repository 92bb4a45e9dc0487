// Feeds the loader with states that may be anything: it refuses them, or makes forests that keep every promise. A
// program of libFuzzer, which also says how states are mutated.
//
// An exception that is not expected is not caught: what then aborts shows where it was thrown.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <stdexcept>
#include <type_traits>

#include "archive.hpp"
#include "byte_state.hpp"
#include "forget_edges.hpp"
#include "invariants.hpp"
#include "rng.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace onlineforest::fuzz {

namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20;
// Larger forests are restored, but not used: so there are many tries in a second. The more so if they try out measures,
// which takes long and has nothing to do with what was restored.
constexpr std::size_t kMostPoints = 300, kMostPointsOfTrial = 40, kMostTrees = 10, kMostFeatures = 64;
constexpr std::int32_t kMostClasses = 1000;
constexpr std::size_t kMostSeen = std::size_t{1} << 50;  // some more can be seen before there are too many to be saved

void expect(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

template <class Forest>
std::unique_ptr<Forest> restore(const ForestState<Forest>& state) {
  return Archive<Forest>::restore(state, {1, kMostBytes, {}});
}

template <class Forest>
Arrays saved(const Forest& forest) {
  return to_arrays(Archive<Forest>::save(forest));
}

// As numbers: 0 has no sign, and what is none (as an option may be that is not used) is as any other such.
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

bool has_few_classes(const LabelForest& forest) { return forest.n_classes() <= kMostClasses; }
bool has_few_classes(const GaussianForest&) { return true; }

bool is_tuned(const LabelOptions& options) { return options.learns_leaf_discount; }
bool is_tuned(const GaussianOptions& options) { return options.learns_discount || options.learns_noise; }

template <class Forest>
bool is_usable(const Forest& forest) {
  const auto& options = forest.options();
  const bool makes_trials = options.weight_rule == WeightRule::kLearned || is_tuned(options);
  return options.n_trees <= kMostTrees && options.n_features <= kMostFeatures && has_few_classes(forest) &&
         forest.n_seen() <= kMostSeen && forest.n_points() <= (makes_trials ? kMostPointsOfTrial : kMostPoints);
}

// Some rows that were learned, and some far from all.
template <class Forest>
std::vector<float> some_rows(const Forest& forest) {
  const std::size_t width = forest.options().n_features;
  std::vector<float> rows = forest.read([&](const auto& f) {
    const auto stored = f.points().rows();
    return std::vector<float>(stored.begin(), stored.begin() + std::min<std::ptrdiff_t>(std::ssize(stored), 2 * width));
  });
  for (const float x : {0.5f, -1e3f, std::numeric_limits<float>::max()}) rows.insert(rows.end(), width, x);
  return rows;
}

void check_predictions(const LabelForest& forest) {
  const std::size_t n_classes = static_cast<std::size_t>(forest.n_classes());
  const std::vector<double> predicted = forest.predict(some_rows(forest), 1);
  for (std::size_t i = 0; i < predicted.size(); i += n_classes) {
    double sum = 0.0;
    for (const double p : std::span(predicted).subspan(i, n_classes)) {
      expect(p >= 0.0, "a probability is one");
      sum += p;
    }
    expect(std::abs(sum - 1.0) < 1e-6, "probabilities add up to 1");
  }
}

void check_predictions(const GaussianForest& forest) {
  if (forest.n_points() == 0) return;
  const std::vector<float> rows = some_rows(forest);
  const std::vector<double> levels{0.01, 0.5, 0.99}, values(rows.size() / forest.options().n_features, 1.0);
  const std::vector<double> predicted = forest.predict(rows, 1), quantiles = forest.quantiles(rows, levels, 1);
  for (std::size_t i = 0; i < predicted.size(); i += 2) {
    expect(std::isfinite(predicted[i]), "a mean is a number");
    expect(predicted[i + 1] >= 0.0 && std::isfinite(predicted[i + 1]), "a standard deviation is one");
  }
  for (std::size_t i = 0; i < quantiles.size(); ++i) {
    expect(std::isfinite(quantiles[i]), "a quantile is a number");
    expect(i % levels.size() == 0 || quantiles[i - 1] <= quantiles[i], "quantiles are in order");
  }
  for (const double density : forest.log_density(rows, values, 1)) expect(!std::isnan(density), "a density is one");
}

void learn(LabelForest& forest, const std::vector<float>& rows, bool one_by_one) {
  const std::int32_t n_classes = std::max(forest.n_classes(), 2);
  std::vector<Label> labels(rows.size() / forest.options().n_features);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = i % 2 == 0 ? 0 : n_classes - 1;
  forest.learn(rows, labels, n_classes, 1, {}, one_by_one);
}

void learn(GaussianForest& forest, const std::vector<float>& rows, bool one_by_one) {
  std::vector<double> values(rows.size() / forest.options().n_features);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 2 == 0 ? 1.0 : 1e6;
  forest.learn(rows, values, 1, {}, one_by_one);
}

// Learns a set of points, learns them once more one by one, forgets one; calls check() after each.
template <class Forest, class Check>
void use(Forest& forest, Check check) {
  const std::vector<float> rows = some_rows(forest);
  for (const bool one_by_one : {false, true}) {
    learn(forest, rows, one_by_one);
    check();
  }
  const std::vector<Serial> serials = forest.serials();
  if (!serials.empty()) forest.forget(std::span(&serials[serials.size() / 2], 1), 1);
  check();
}

template <class Forest>
void check_restored(Forest& forest) {
  check_invariants(forest);
  const auto twin = restore(Archive<Forest>::save(forest));
  expect(are_same(saved(*twin), saved(forest)), "a forest that was restored is saved as it was");
  if (!is_usable(forest)) return;
  check_predictions(forest);
  use(forest, [&] { check_invariants(forest); });
  check_predictions(forest);
  use(*twin, [] {});
  expect(are_same(saved(*twin), saved(forest)), "a forest that was restored learns on as it would have");
  restore(Archive<Forest>::save(forest));
}

template <class Forest>
void check_state(const Arrays& arrays) {
  std::unique_ptr<Forest> forest;
  ForestState<Forest> state;
  try {
    state = to_state<Forest>(arrays);
    forest = restore(state);
  } catch (const std::invalid_argument&) {  // Nothing else, not even std::bad_alloc: memory is to be counted before.
    forget_edges();
    return;
  }
  expect(state.measures.size() > 1 || are_same(saved(*forest), to_arrays(std::move(state))),
         "what is restored is saved");
  check_restored(*forest);
}

// Changes some of the numbers of a state, most often one.
class Mutation {
 public:
  Mutation(Arrays& arrays, unsigned seed) : arrays_(arrays), rng_(seed, 0) {}

  void apply() {
    do {
      const bool is_plain = pick(4) == 0;
      std::visit([&](auto& numbers) { is_plain ? change_bytes(numbers) : change(numbers); },
                 arrays_[pick(arrays_.size())].numbers);
    } while (pick(3) == 0);
  }

 private:
  std::size_t pick(std::size_t n) { return static_cast<std::size_t>(rng_.next() % n); }

  template <class T>
  T& any_of(std::vector<T>& numbers) {
    return numbers[pick(numbers.size())];
  }

  // As libFuzzer does, which has seen what numbers were compared with.
  template <class T>
  void change_bytes(std::vector<T>& numbers) {
    const std::size_t n_bytes = numbers.size() * sizeof(T);
    if (n_bytes > 0) LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(numbers.data()), n_bytes, n_bytes);
  }

  template <class T>
  void change(std::vector<T>& numbers) {
    if (numbers.empty()) {
      numbers.push_back(another<T>());
      return;
    }
    T& number = any_of(numbers);
    switch (pick(8)) {
      case 0:
        std::swap(number, any_of(numbers));
        break;
      case 1:
        number = any_of(numbers);
        break;
      case 2:
        number = another<T>();
        break;
      case 3:
        numbers.insert(numbers.begin() + (&number - numbers.data()), T(number));
        break;
      case 4:
        numbers.erase(numbers.begin() + (&number - numbers.data()));
        break;
      default:
        number = odd(number);
    }
  }

  // A number of another array of the same type; 0 if there is none, or no luck.
  template <class T>
  T another() {
    auto* numbers = std::get_if<std::vector<T>>(&arrays_[pick(arrays_.size())].numbers);
    return numbers == nullptr || numbers->empty() ? T() : any_of(*numbers);
  }

  template <class T>
  T odd(T now) {
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_floating_point_v<T>) {
      const T all[] = {0,         1,         -1,
                       now + 1,   now - 1,   2 * now,
                       now / 2,   -now,      std::nextafter(now, Limits::max()),
                       1 / now,   T(1e-30),  std::nextafter(now, Limits::lowest()),
                       T(1e10),   T(1e30),   T(-1e30),
                       T(1e150),  T(1e200),  Limits::max(),
                       -T(1e150), -T(1e200), Limits::lowest(),
                       T(1e-9),   T(1e-200), Limits::denorm_min(),
                       T(0.5),    T(-0.0),   Limits::quiet_NaN(),
                       T(10),     T(1e300),  Limits::infinity(),
                       T(100),    T(1e-300), -Limits::infinity()};
      return all[pick(std::size(all))];
    } else {
      const auto bits = static_cast<std::make_unsigned_t<T>>(now);  // may overflow
      const T all[] = {0,
                       1,
                       static_cast<T>(-1),
                       static_cast<T>(bits + 1),
                       static_cast<T>(bits - 1),
                       static_cast<T>(2 * bits),
                       static_cast<T>(bits / 2),
                       Limits::min(),
                       Limits::max(),
                       Limits::max() / 2,
                       static_cast<T>(pick(100)),
                       static_cast<T>(std::uint64_t{1} << pick(64))};
      return all[pick(std::size(all))];
    }
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
  if (state->kind == fuzz::Kind::kLabels) {
    fuzz::check_state<LabelForest>(state->arrays);
  } else {
    fuzz::check_state<GaussianForest>(state->arrays);
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
