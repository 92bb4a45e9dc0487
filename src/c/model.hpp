// A forest of a model file: learns, predicts and is saved as the estimator in Python. Must not know C.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/call.hpp"
#include "classes.hpp"
#include "container.hpp"
#include "forest_file.hpp"
#include "guided/label_forest.hpp"
#include "guided/number_forest.hpp"
#include "metadata.hpp"

namespace onlineforest::capi {

// How often each of some samples counts, as users say it; none if each counts once.
using SampleWeights = std::optional<std::span<const double>>;

// What classifiers and regressors have in common.
class Model {
 public:
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  [[nodiscard]] virtual of_kind kind() const = 0;
  [[nodiscard]] virtual std::size_t n_features() const = 0;
  [[nodiscard]] virtual std::size_t n_seen() const = 0;
  [[nodiscard]] virtual std::size_t n_stored() const = 0;
  void save(const std::string& path) const;

 protected:
  explicit Model(Metadata metadata) : metadata_(std::move(metadata)) {}

  // Writes the state of the core forest with metadata that agree with it.
  virtual void write(const std::string& path) const = 0;
  template <class Target>
  void write_state(const std::string& path, guided::ForestState<Target> state, Metadata metadata,
                   std::span<const std::uint8_t> are_stored) const;

  Metadata metadata_;
  Ids ids_;
  // Predictions share it. So no sample changes between two questions of one call to the core forest.
  mutable std::shared_mutex mutex_;
};

class Classifier final : public Model {
 public:
  Classifier(const Contents& contents, const Settings& settings, std::size_t max_bytes, Allowance& memory);

  [[nodiscard]] of_kind kind() const override { return OF_CLASSIFIER; }
  [[nodiscard]] std::size_t n_features() const override { return forest_->n_features(); }
  [[nodiscard]] std::size_t n_seen() const override { return forest_->n_seen(); }
  [[nodiscard]] std::size_t n_stored() const override { return forest_->n_points(); }
  [[nodiscard]] const Classes& classes() const { return *classes_; }

  // `indices` are those of classes. All arguments but weights are checked by the caller.
  void learn(std::span<const float> rows, std::span<const std::int32_t> indices, SampleWeights weights,
             const Call& call);
  // n_rows * n_classes probabilities.
  void predict_proba(std::span<const float> rows, const Call& call, std::span<double> out);
  // The most probable class of each row, which does not depend on the calibration.
  void predict(std::span<const float> rows, const Call& call, std::span<std::int32_t> out);

 private:
  // A calibration, and how many samples had been seen when it was found.
  struct Found {
    std::uint64_t n_seen;
    guided::LabelCalibration calibration;
  };

  void write(const std::string& path) const override;
  void check_can_predict() const;
  [[nodiscard]] std::optional<Found> calibration_in(const Json& json) const;
  [[nodiscard]] guided::LabelCalibration current_calibration(const Call& call);
  // For each code 1 if the label is known: declared, or that of a stored sample.
  [[nodiscard]] std::vector<std::uint8_t> are_known() const;
  [[nodiscard]] std::vector<double> probabilities(std::span<const float> rows,
                                                  const guided::LabelCalibration& calibration, const Call& call) const;
  void balance(std::span<double> probabilities) const;

  std::unique_ptr<guided::LabelForest> forest_;
  std::optional<Classes> classes_;
  std::vector<std::uint8_t> are_declared_;  // by code
  std::vector<double> class_weights_;       // by class; none if all are 1
  bool is_balanced_ = false;
  std::mutex calibration_mutex_;
  std::optional<Found> found_;
};

class Regressor final : public Model {
 public:
  Regressor(const Contents& contents, const Settings& settings, std::size_t max_bytes, Allowance& memory);

  [[nodiscard]] of_kind kind() const override { return OF_REGRESSOR; }
  [[nodiscard]] std::size_t n_features() const override { return forest_->n_features(); }
  [[nodiscard]] std::size_t n_seen() const override { return forest_->n_seen(); }
  [[nodiscard]] std::size_t n_stored() const override { return forest_->n_points(); }

  void learn(std::span<const float> rows, std::span<const double> numbers, SampleWeights weights, const Call& call);
  void predict(std::span<const float> rows, const Call& call, std::span<double> out);

 private:
  void write(const std::string& path) const override;

  std::unique_ptr<guided::NumberForest> forest_;
};

// The forest in a model file.
[[nodiscard]] std::unique_ptr<Model> load_model(const std::string& path, std::uint64_t max_bytes);

}  // namespace onlineforest::capi
