#include "model.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "disk.hpp"
#include "lesson.hpp"
#include "points/weight.hpp"

namespace onlineforest::capi {

namespace {

// The core forest of a file, and the ids beside it.
template <class Forest, class Target>
[[nodiscard]] std::pair<std::unique_ptr<Forest>, Ids> restored(const Contents& contents, const Settings& settings,
                                                               std::size_t max_bytes, Allowance& memory) {
  auto [state, ids] = state_in<Target>(contents.arrays, settings.options);
  check_counts(contents.metadata, counts_of(state, ids), memory);
  std::unique_ptr<Forest> forest = Forest::restore(state, max_bytes);
  const std::vector<std::uint8_t> are_stored = forest->are_stored(ids.serials);
  check(std::ranges::find(are_stored, 0) == are_stored.end(), "one of its ids belongs to no stored sample");
  return {std::move(forest), std::move(ids)};
}

}  // namespace

void Model::save(const std::string& path) const {
  if (has_key(metadata_, "position")) {
    throw Failure(OF_UNSUPPORTED,
                  "the forest comes from a checkpoint with a position in its stream, which the C API cannot update");
  }
  const std::unique_lock lock(mutex_);
  write(path);
}

template <class Target>
void Model::write_state(const std::string& path, guided::ForestState<Target> state, Metadata metadata,
                        std::span<const std::uint8_t> are_stored) const {
  const Ids ids = ids_.only(are_stored);
  set_text(metadata, "library_version", ONLINEFOREST_VERSION);
  set_text(metadata, "counts", json_of(counts_of(state, ids)));
  std::vector<Array> arrays = arrays_of(state, ids);
  const std::vector<std::uint8_t> beginning = beginning_of(metadata, arrays);
  std::vector<Bytes> parts{beginning};
  for (const Array& array : arrays) parts.push_back(array.bytes);
  replace_file(path, parts);
}

Classifier::Classifier(const Contents& contents, const Settings& settings, std::size_t max_bytes, Allowance& memory)
    : Model(contents.metadata) {
  std::tie(forest_, ids_) = restored<guided::LabelForest, guided::Labels>(contents, settings, max_bytes, memory);
  const auto labels = forest_->save().ledger;
  classes_.emplace(metadata_, labels.hashes, memory);
  classes_->check_declared(metadata_, labels.are_declared, memory);
  are_declared_ = labels.are_declared;
  classes_->check_known(are_known());
  class_weights_ = classes_->weights_in(settings.class_weight);
  is_balanced_ = settings.class_weight.is(Json::Kind::kText);
  found_ = calibration_in(json_at(metadata_, "calibration", memory));
}

std::optional<Classifier::Found> Classifier::calibration_in(const Json& json) const {
  if (json.is(Json::Kind::kNull)) return {};
  check(json.is(Json::Kind::kList) && json.items.size() == 3 && json.items[1].is_real() && json.items[2].is_real(),
        "its calibration cannot be read");
  const auto n_seen = json.items[0].word();
  const guided::LabelCalibration calibration{json.items[1].number(), json.items[2].number()};
  check(n_seen && *n_seen < forest_->n_seen(), "its calibration is not older than its samples");
  guided::check_calibration(calibration);
  return Found{*n_seen, calibration};
}

std::vector<std::uint8_t> Classifier::are_known() const {
  const std::vector<Weight> weights = forest_->label_weights();
  std::vector<std::uint8_t> result = are_declared_;
  for (std::size_t code = 0; code < weights.size(); ++code) result[code] |= weights[code] > 0 ? 1 : 0;
  return result;
}

void Classifier::learn(std::span<const float> rows, std::span<const std::int32_t> indices, SampleWeights weights,
                       const Call& call) {
  if (weights) check_sample_weights(*weights);
  std::vector<double> of_classes;
  for (std::size_t i = 0; i < indices.size() && !class_weights_.empty(); ++i) {
    const double own = weights ? (*weights)[i] : 1.0;
    of_classes.push_back(class_weights_[static_cast<std::size_t>(indices[i])] * own);
  }
  if (!class_weights_.empty()) weights = of_classes;
  std::vector<std::int32_t> codes;
  for (const std::int32_t index : indices) codes.push_back(classes_->code(static_cast<std::size_t>(index)));
  const Lesson<std::int32_t> lesson(rows, codes, weights);
  const std::unique_lock lock(mutex_);
  if (!lesson.values().empty()) forest_->learn(lesson.rows(), lesson.values(), lesson.weights(), call);
}

guided::LabelCalibration Classifier::current_calibration(const Call& call) {
  constexpr std::size_t kLag = 8;  // a calibration is out of date when this share of the samples is new
  if (!forest_->options().calibrates) return {};
  const std::lock_guard lock(calibration_mutex_);
  const std::size_t n_seen = forest_->n_seen();
  if (!found_ || n_seen - found_->n_seen > forest_->n_points() / kLag) {
    const auto votes = forest_->left_out_votes(0, std::numeric_limits<std::size_t>::max(), call);
    found_ = Found{n_seen, forest_->find_calibration(votes, forest_->options().n_trees)};
  }
  return found_->calibration;
}

std::vector<double> Classifier::probabilities(std::span<const float> rows, const guided::LabelCalibration& calibration,
                                              const Call& call) const {
  const std::size_t n_codes = are_declared_.size(), n_classes = classes_->size();
  const std::vector<double> by_code = forest_->predict(rows, calibration, call);
  std::vector<double> result;
  result.reserve(rows.size() / n_features() * n_classes);
  for (std::size_t at = 0; at < by_code.size(); at += n_codes) {
    for (std::size_t k = 0; k < n_classes; ++k) {
      result.push_back(by_code[at + static_cast<std::size_t>(classes_->code(k))]);
    }
  }
  if (is_balanced_) balance(result);
  return result;
}

// As if all classes were equally frequent. A class without samples counts as one of mean weight. In the order of
// Python's operations, so that the last bits agree.
void Classifier::balance(std::span<double> probabilities) const {
  const std::vector<Weight> by_code = forest_->label_weights();
  std::vector<double> weights, factors;
  double sum = 0.0, n_held = 0.0;
  for (std::size_t k = 0; k < classes_->size(); ++k) {
    weights.push_back(multiplicity(by_code[static_cast<std::size_t>(classes_->code(k))]));
    sum += weights.back();
    n_held += weights.back() > 0.0 ? 1.0 : 0.0;
  }
  const double mean = sum / std::max(n_held, 1.0);
  for (const double weight : weights) factors.push_back(weight > 0.0 ? mean / weight : 1.0);
  for (std::size_t at = 0; at < probabilities.size(); at += factors.size()) {
    double total = 0.0;
    for (std::size_t k = 0; k < factors.size(); ++k) total += probabilities[at + k] *= factors[k];
    for (std::size_t k = 0; k < factors.size(); ++k) probabilities[at + k] /= total;
  }
}

void Classifier::check_can_predict() const {
  const std::vector<std::uint8_t> known = are_known();
  if (std::ranges::find(known, 1) == known.end()) {
    throw Failure(OF_INVALID_ARGUMENT, "the forest holds no samples and knows no class: it cannot predict");
  }
}

void Classifier::predict_proba(std::span<const float> rows, const Call& call, std::span<double> out) {
  const std::shared_lock lock(mutex_);
  check_can_predict();
  std::ranges::copy(probabilities(rows, current_calibration(call), call), out.begin());
}

void Classifier::predict(std::span<const float> rows, const Call& call, std::span<std::int32_t> out) {
  const std::shared_lock lock(mutex_);
  check_can_predict();
  const std::vector<double> result = probabilities(rows, {}, call);
  const std::size_t n_classes = classes_->size();
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto of_row = std::span(result).subspan(i * n_classes, n_classes);
    out[i] = static_cast<std::int32_t>(std::ranges::max_element(of_row) - of_row.begin());
  }
}

void Classifier::write(const std::string& path) const {
  auto state = forest_->save();
  Metadata metadata = metadata_;
  classes_->write(are_known(), metadata, state.ledger.hashes);
  // One that does not lag is computed again: equal forests have equal files.
  const bool lags = found_ && found_->n_seen != forest_->n_seen();
  set_text(metadata, "calibration",
           lags ? '[' + std::to_string(found_->n_seen) + ',' + json_number(found_->calibration.power) + ',' +
                      json_number(found_->calibration.spread) + ']'
                : "null");
  write_state(path, std::move(state), std::move(metadata), forest_->are_stored(ids_.serials));
}

Regressor::Regressor(const Contents& contents, const Settings& settings, std::size_t max_bytes, Allowance& memory)
    : Model(contents.metadata) {
  std::tie(forest_, ids_) = restored<guided::NumberForest, guided::Numbers>(contents, settings, max_bytes, memory);
}

void Regressor::learn(std::span<const float> rows, std::span<const double> numbers, SampleWeights weights,
                      const Call& call) {
  const Lesson<double> lesson(rows, numbers, weights);
  const std::unique_lock lock(mutex_);
  if (!lesson.values().empty()) forest_->learn(lesson.rows(), lesson.values(), lesson.weights(), call);
}

void Regressor::predict(std::span<const float> rows, const Call& call, std::span<double> out) {
  const std::shared_lock lock(mutex_);
  if (forest_->n_points() == 0) {
    throw Failure(OF_INVALID_ARGUMENT, "the forest holds no samples: it cannot predict");
  }
  const std::vector<guided::TreeMoments> moments = forest_->predict(rows, call);
  for (std::size_t i = 0; i < moments.size(); ++i) out[i] = moments[i].mean;
}

void Regressor::write(const std::string& path) const {
  write_state(path, forest_->save(), metadata_, forest_->are_stored(ids_.serials));
}

std::unique_ptr<Model> load_model(const std::string& path, std::uint64_t max_bytes) {
  const std::uint64_t limit = max_bytes == 0 ? memory_of_machine() : max_bytes;
  const std::vector<std::uint8_t> file = read_file(path, limit);
  Allowance memory(limit);
  const Contents contents = read_container(file, memory);
  const of_kind kind = kind_in(contents.metadata);
  // First, because it names what is not supported: categorical features bring metadata of their own.
  const Settings settings = settings_in(contents.metadata, kind, memory);
  check_keys(contents.metadata, kind);
  if (has_key(contents.metadata, "position")) (void)json_at(contents.metadata, "position", memory);
  if (kind == OF_CLASSIFIER) return std::make_unique<Classifier>(contents, settings, limit, memory);
  return std::make_unique<Regressor>(contents, settings, limit, memory);
}

}  // namespace onlineforest::capi
