// Writes the fuzzer's first inputs, states of small forests of many kinds, into a folder, one file each. Knows nothing
// of the fuzzer.
//   make_corpus FOLDER
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "byte_state.hpp"
#include "data.hpp"
#include "mondrian/state/archive.hpp"

namespace onlineforest::fuzz {

namespace {

using testing::Data;
using testing::learn;

// Values depend on feature 0, so that a forest can learn them. Rows lie in [0, when]: later batches have a wider range,
// so that the measure changes.
template <class Value>
Data<Value> some_data(std::size_t n, std::size_t n_features, double n_values, std::size_t when) {
  Rng rng(when, 0);
  Data<Value> data;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t d = 0; d < n_features; ++d) {
      data.rows.push_back(static_cast<float>(rng.uniform() * static_cast<double>(when)));
    }
    const double x = data.rows[i * n_features] / static_cast<double>(when);
    data.values.push_back(static_cast<Value>((0.7 * x + 0.3 * rng.uniform()) * n_values));
  }
  return data;
}

template <class State>
void write_bytes(const std::filesystem::path& path, Kind kind, State state) {
  const auto bytes = ByteState{kind, to_arrays(std::move(state))}.encode();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

// Mondrian forests.
class Corpus {
 public:
  explicit Corpus(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void add_all() {
    add("plain", [](mondrian::ForestOptions&) {});
    add("lifetime", [](mondrian::ForestOptions& o) { o.lifetime = 2.0; });
    add("split_5", [](mondrian::ForestOptions& o) { o.min_samples_split = 5; });
    add("unit_weights", [](mondrian::ForestOptions& o) { o.weight_rule = mondrian::WeightRule::kUnit; });
    add("fixed_weights", [](mondrian::ForestOptions& o) {
      o.weight_rule = mondrian::WeightRule::kFixed;
      o.weights.assign(o.n_features, 0.5);
      o.weights.back() = 0.0;
    });
    add("learned_weights", [](mondrian::ForestOptions& o) { o.weight_rule = mondrian::WeightRule::kLearned; });
    add("window", [](mondrian::ForestOptions& o) { o.keep = {KeepRule::kLatest, 12, kInfinity}; });
    add("sample", [](mondrian::ForestOptions& o) { o.keep = {KeepRule::kSample, 12, 10.0}; });
    for (const std::size_t n : {0, 1, 2}) add(std::to_string(n) + "_points", [](mondrian::ForestOptions&) {}, n);
    add("many_classes", [](mondrian::ForestOptions&) {}, 20, 100);
    add("leaf_discount", [](mondrian::ForestOptions& o) { o.leaf_discount = 0.5; });
    add("learned_leaf_discount", [](mondrian::ForestOptions& o) { o.learns_leaf_discount = true; });
    add_duplicates();
    add_forgotten();
    add_interrupted();
  }

 private:
  static constexpr std::int32_t kClasses = 3;

  // A forest that learned two batches, with default options except for what `change` sets.
  template <class Change>
  void add(const std::string& name, Change change, std::size_t n_points = 15, std::int32_t n_classes = 3) {
    mondrian::ForestOptions options = next_options();
    change(options);
    mondrian::Forest forest(options);
    learn(forest, data(options, n_points, 1, n_classes), n_classes);
    learn(forest, data(options, n_points / 3, 2, n_classes), n_classes);
    write(name, mondrian::Archive::save(forest));
  }

  // Each state has another number of trees and features.
  mondrian::ForestOptions next_options() {
    mondrian::ForestOptions options;
    options.n_trees = 1 + n_written_ % 3;
    options.n_features = 2 + n_written_ % 3;
    options.seed = n_written_;
    return options;
  }

  static Data<mondrian::Label> data(const mondrian::ForestOptions& options, std::size_t n, std::size_t when,
                                    std::int32_t n_classes = kClasses) {
    return some_data<mondrian::Label>(n, options.n_features, n_classes, when);
  }

  void add_duplicates() {
    const mondrian::ForestOptions options = next_options();
    mondrian::Forest forest(options);
    Data<mondrian::Label> few = data(options, 4, 1);
    for (int i = 0; i < 3; ++i) learn(forest, few, kClasses);
    std::swap(few.values.front(), few.values.back());  // equal rows with different values
    learn(forest, few, kClasses);
    write("duplicates", mondrian::Archive::save(forest));
  }

  void add_forgotten() {
    const mondrian::ForestOptions options = next_options();
    mondrian::Forest forest(options);
    learn(forest, data(options, 25, 1), kClasses);
    forest.forget(std::vector<Serial>{0, 7, 24}, Call(1));
    write("forgotten", mondrian::Archive::save(forest));
    forest.keep_latest(0, Call(1));
    write("all_forgotten", mondrian::Archive::save(forest));
  }

  // Three trees of a forest whose learning was stopped: some have the new measure and all points, some the old measure
  // and fewer points. A stop takes effect only after some work, so the forest has very many trees.
  void add_interrupted() {
    mondrian::ForestOptions options = next_options();
    options.n_trees = 100'000;
    mondrian::Forest forest(options);
    learn(forest, data(options, 12, 1), kClasses);
    try {
      learn(forest, data(options, 14, 2), kClasses, 1, [] { return true; });
      throw std::runtime_error("learning finished although a stop was requested");
    } catch (const Interrupted&) {
    }
    mondrian::ForestState state = mondrian::Archive::save(forest);
    const auto is_behind = [&](const mondrian::TreeState& tree) {
      return tree.next_point.size() < state.values.size();
    };
    const auto first = std::ranges::find_if(state.trees, is_behind);
    if (first == state.trees.begin() || std::ranges::distance(first, state.trees.end()) < 2) {
      throw std::runtime_error("learning stopped in the first tree or in the last two trees");
    }
    state.trees = {first[-1], first[0], first[1]};
    state.options.n_trees = state.trees.size();
    write("interrupted", mondrian::Archive::save(*mondrian::Archive::restore(state)));
  }

  void write(const std::string& name, mondrian::ForestState state) {
    write_bytes(folder_ / ("mondrian_" + name), Kind::kMondrian, std::move(state));
    ++n_written_;
  }

  std::filesystem::path folder_;
  std::size_t n_written_ = 0;
};

// Order-free forests that learned some samples twice and forgot others. The first row lacks its first value.
template <OrderFree Forest>
class OrderFreeCorpus {
 public:
  explicit OrderFreeCorpus(std::filesystem::path folder) : folder_(std::move(folder)) {}

  template <class Change>
  void add(const std::string& name, Change change, std::size_t n_points = 20, std::size_t n_kept = 1000,
           std::int32_t n_labels = 3) {
    orderfree::Options options;
    options.n_trees = 1 + n_written_ % 3;
    options.layout = {1 + n_written_ % 4};
    options.seed = n_written_++;
    change(options);
    Forest forest(options);
    constexpr bool has_labels = kKindOf<Forest> == Kind::kOrderFreeLabels;
    if constexpr (has_labels) {
      // The last label is declared and has no samples.
      std::vector<orderfree::Word> hashes;
      for (std::int32_t i = 0; i <= n_labels; ++i) hashes.push_back(scramble(static_cast<orderfree::Word>(i)));
      std::vector<std::uint8_t> are_declared(hashes.size(), 0);
      are_declared.back() = 1;
      forest.set_labels(hashes, are_declared);
    }
    for (const std::size_t n : {n_points, n_points / 2}) {
      const orderfree::Layout& layout = options.layout;
      auto data = some_data<typename Forest::Value>(n, layout.width(), n_labels, 1);
      for (std::size_t i = 0; i < data.rows.size(); ++i) {  // some levels are equal
        float& cell = data.rows[i];
        if (layout.is_level_cell(i % layout.width()))
          cell = static_cast<float>(1 + static_cast<int>(cell * 64) % 8) / 4;
      }
      if (n > 0 && layout.n_numeric() > 0) data.rows[0] = orderfree::kMissing;
      std::vector<Weight> weights;  // each second forest has some
      for (std::size_t i = 0; i < n && n_written_ % 2 == 0; ++i) weights.push_back(1 + static_cast<int>(i) * 20'000);
      forest.learn(data.rows, data.values, weights, Call(1));
    }
    const std::vector<Serial> serials = forest.serials();
    if (serials.size() > 3) forest.forget(std::span(serials).subspan(1, 2), Call(1));
    forest.keep_latest(n_kept, Call(1));
    const std::string kind = has_labels ? "order_free_labels_" : "order_free_numbers_";
    write_bytes(folder_ / (kind + name), kKindOf<Forest>, forest.save());
  }

  void add_common() {
    add("plain", [](orderfree::Options&) {});
    add("split_5", [](orderfree::Options& o) { o.min_samples_split = 5; });
    add("window", [](orderfree::Options& o) { o.keep = {KeepRule::kLatest, 12, kInfinity}; });
    add("sample", [](orderfree::Options& o) { o.keep = {KeepRule::kSample, 12, 10.0}; });
    add("left_out", [](orderfree::Options& o) { o.max_samples = 0.5; });
    add("tied", [](orderfree::Options& o) { o.key_bits = 2; });
    add("many", [](orderfree::Options&) {}, 80);
    add("forgotten", [](orderfree::Options&) {}, 20, 5);
    add("all_forgotten", [](orderfree::Options&) {}, 20, 0);
    add("0_points", [](orderfree::Options&) {}, 0);
    add("categorical", [](orderfree::Options& o) { o.layout = {3, 2}; });
    add("only_categorical", [](orderfree::Options& o) { o.layout = {2, 2}; }, 80);
  }

 private:
  std::filesystem::path folder_;
  std::size_t n_written_ = 0;
};

void make_corpus(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  Corpus(folder).add_all();

  OrderFreeCorpus<orderfree::LabelForest> of_order_free_labels(folder);
  of_order_free_labels.add_common();
  of_order_free_labels.add("many_labels", [](orderfree::Options&) {}, 70, 1000, 50);

  OrderFreeCorpus<orderfree::NumberForest> of_order_free_numbers(folder);
  of_order_free_numbers.add_common();
  of_order_free_numbers.add("calibrated", [](orderfree::Options& o) { o.calibrates = true; }, 40);
}

}  // namespace

}  // namespace onlineforest::fuzz

int main(int n_arguments, char** arguments) {
  if (n_arguments != 2) {
    std::fprintf(stderr, "usage: make_corpus FOLDER\n");
    return 2;
  }
  onlineforest::fuzz::make_corpus(arguments[1]);
}
