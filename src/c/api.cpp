// The functions of onlineforest.h: checks arguments, turns exceptions into a status and a message.
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string>

#include "base/allowance.hpp"
#include "base/call.hpp"
#include "failure.hpp"
#include "model.hpp"
#include "onlineforest.h"

struct of_forest {
  std::unique_ptr<onlineforest::capi::Model> model;
};

namespace onlineforest::capi {

namespace {

// A fixed size: to note that there is no memory must not need any.
thread_local char last_error[1024] = "";

of_status note(of_status status, const std::string& where, const char* message) noexcept {
  std::snprintf(last_error, sizeof last_error, "%s%s%s", where.c_str(), where.empty() ? "" : ": ", message);
  for (char* c = last_error; *c != '\0'; ++c) {
    if (static_cast<unsigned char>(*c) < ' ' || *c == '\x7f') *c = ' ';  // a path may have any
  }
  return status;
}

// Runs work() and returns the status. Messages begin with `where`, a path, if it is not empty. `invalid` is the status
// of std::invalid_argument, which the core throws about arguments and about states.
template <class Work>
of_status guarded(const std::string& where, of_status invalid, Work work) noexcept {
  try {
    work();
    return OF_OK;
  } catch (const Failure& failure) {
    return note(failure.status(), where, failure.what());
  } catch (const TooLarge& error) {
    return note(OF_TOO_LARGE, where, error.what());
  } catch (const std::bad_alloc&) {
    return note(OF_NO_MEMORY, where, "there is not enough memory");
  } catch (const std::invalid_argument& error) {
    return note(invalid, where, error.what());
  } catch (const std::length_error& error) {
    return note(invalid, where, error.what());
  } catch (const std::exception& error) {
    return note(OF_INTERNAL_ERROR, where, error.what());
  } catch (...) {
    return note(OF_INTERNAL_ERROR, where, "an unknown exception");
  }
}

template <class Work>
of_status guarded(Work work) noexcept {
  return guarded(std::string(), OF_INVALID_ARGUMENT, work);
}

[[noreturn]] void refuse_argument(const std::string& why) { throw Failure(OF_INVALID_ARGUMENT, why); }

void require_pointer(const void* pointer, const char* name) {
  if (pointer == nullptr) refuse_argument(std::string(name) + " is NULL");
}

// The forest as one of a kind.
template <class Kind>
[[nodiscard]] Kind& as(const of_forest* forest) {
  require_pointer(forest, "forest");
  auto* model = dynamic_cast<Kind*>(forest->model.get());
  if (model == nullptr) {
    refuse_argument(forest->model->kind() == OF_CLASSIFIER
                        ? "the forest is a classifier, but this call needs a regressor"
                        : "the forest is a regressor, but this call needs a classifier");
  }
  return *model;
}

[[nodiscard]] std::size_t checked_threads(unsigned n_threads) {
  constexpr unsigned kMost = 1024;
  if (n_threads < 1 || n_threads > kMost) {
    refuse_argument("n_threads is " + std::to_string(n_threads) + ", but must be in [1, " + std::to_string(kMost) +
                    "]");
  }
  return n_threads;
}

[[nodiscard]] std::size_t product_of(std::size_t a, std::size_t b, const char* what) {
  if (b != 0 && a > PTRDIFF_MAX / sizeof(double) / b) {
    refuse_argument(std::to_string(a) + " * " + std::to_string(b) + " " + what + " do not fit the memory");
  }
  return a * b;
}

[[nodiscard]] std::span<const float> checked_rows(const Model& model, const float* rows, std::size_t n_rows,
                                                  std::size_t n_features) {
  if (n_features != model.n_features()) {
    refuse_argument("rows have " + std::to_string(n_features) + " features, but this forest has " +
                    std::to_string(model.n_features()));
  }
  if (n_rows > 0) require_pointer(rows, "rows");
  const std::span<const float> all(rows, product_of(n_rows, n_features, "values of rows"));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (std::isinf(all[i])) {
      refuse_argument("feature " + std::to_string(i % n_features) + " of row " + std::to_string(i / n_features) +
                      " is infinite, but must be finite, or NaN if it is missing");
    }
  }
  return all;
}

template <class T>
[[nodiscard]] std::span<T> checked_out(T* out, std::size_t n_out, std::size_t n_needed) {
  if (n_out < n_needed) {
    refuse_argument("out has room for " + std::to_string(n_out) + " values, but needs " + std::to_string(n_needed));
  }
  if (n_needed > 0) require_pointer(out, "out");
  return {out, n_needed};
}

[[nodiscard]] SampleWeights weights_of(const double* weights, std::size_t n_rows) {
  if (weights == nullptr) return {};
  return std::span(weights, n_rows);
}

}  // namespace

}  // namespace onlineforest::capi

using namespace onlineforest::capi;
using onlineforest::Call;

extern "C" {

int of_api_version(void) { return OF_API_VERSION; }

const char* of_library_version(void) { return ONLINEFOREST_VERSION; }

const char* of_last_error(void) { return last_error; }

of_status of_load(const char* path, uint64_t max_bytes, of_forest** forest) {
  if (forest != nullptr) *forest = nullptr;
  return guarded([&] {
    require_pointer(path, "path");
    require_pointer(forest, "forest");
    const std::string name = path;
    auto loaded = std::make_unique<of_forest>();
    const of_status status = guarded(name, OF_BAD_FILE, [&] { loaded->model = load_model(name, max_bytes); });
    if (status != OF_OK) throw Failure(status, std::string(last_error));
    *forest = loaded.release();
  });
}

void of_free(of_forest* forest) { delete forest; }

of_kind of_get_kind(const of_forest* forest) { return forest == nullptr ? OF_CLASSIFIER : forest->model->kind(); }

size_t of_n_features(const of_forest* forest) { return forest == nullptr ? 0 : forest->model->n_features(); }

uint64_t of_n_samples_seen(const of_forest* forest) {
  uint64_t n = 0;
  (void)guarded([&] { n = forest == nullptr ? 0 : forest->model->n_seen(); });
  return n;
}

uint64_t of_n_samples_stored(const of_forest* forest) {
  uint64_t n = 0;
  (void)guarded([&] { n = forest == nullptr ? 0 : forest->model->n_stored(); });
  return n;
}

size_t of_n_classes(const of_forest* forest) {
  if (forest == nullptr || forest->model->kind() != OF_CLASSIFIER) return 0;
  return static_cast<const Classifier&>(*forest->model).classes().size();
}

of_status of_class_label(const of_forest* forest, size_t index, const char** label, size_t* n_bytes) {
  return guarded([&] {
    const Classes& classes = as<Classifier>(forest).classes();
    require_pointer(label, "label");
    if (index >= classes.size()) {
      refuse_argument("index is " + std::to_string(index) + ", but must be less than the " +
                      std::to_string(classes.size()) + " classes");
    }
    *label = classes.label(index).c_str();
    if (n_bytes != nullptr) *n_bytes = classes.label(index).size();
  });
}

of_status of_predict_classes(of_forest* forest, const float* rows, size_t n_rows, size_t n_features, unsigned n_threads,
                             int32_t* out, size_t n_out) {
  return guarded([&] {
    auto& model = as<Classifier>(forest);
    const auto checked = checked_rows(model, rows, n_rows, n_features);
    const auto results = checked_out(out, n_out, n_rows);
    model.predict(checked, Call(checked_threads(n_threads)), results);
  });
}

of_status of_predict_proba(of_forest* forest, const float* rows, size_t n_rows, size_t n_features, unsigned n_threads,
                           double* out, size_t n_out) {
  return guarded([&] {
    auto& model = as<Classifier>(forest);
    const auto checked = checked_rows(model, rows, n_rows, n_features);
    const auto results = checked_out(out, n_out, product_of(n_rows, model.classes().size(), "probabilities"));
    model.predict_proba(checked, Call(checked_threads(n_threads)), results);
  });
}

of_status of_predict_numbers(of_forest* forest, const float* rows, size_t n_rows, size_t n_features, unsigned n_threads,
                             double* out, size_t n_out) {
  return guarded([&] {
    auto& model = as<Regressor>(forest);
    const auto checked = checked_rows(model, rows, n_rows, n_features);
    const auto results = checked_out(out, n_out, n_rows);
    model.predict(checked, Call(checked_threads(n_threads)), results);
  });
}

of_status of_learn_classes(of_forest* forest, const float* rows, size_t n_rows, size_t n_features,
                           const int32_t* classes, const double* weights, unsigned n_threads) {
  return guarded([&] {
    auto& model = as<Classifier>(forest);
    const auto checked = checked_rows(model, rows, n_rows, n_features);
    if (n_rows > 0) require_pointer(classes, "classes");
    const std::size_t n_classes = model.classes().size();
    for (std::size_t i = 0; i < n_rows; ++i) {
      if (classes[i] < 0 || static_cast<std::size_t>(classes[i]) >= n_classes) {
        refuse_argument("the class of row " + std::to_string(i) + " is " + std::to_string(classes[i]) +
                        ", but must be in [0, " + std::to_string(n_classes) + ")");
      }
    }
    model.learn(checked, {classes, n_rows}, weights_of(weights, n_rows), Call(checked_threads(n_threads)));
  });
}

of_status of_learn_numbers(of_forest* forest, const float* rows, size_t n_rows, size_t n_features,
                           const double* numbers, const double* weights, unsigned n_threads) {
  return guarded([&] {
    auto& model = as<Regressor>(forest);
    const auto checked = checked_rows(model, rows, n_rows, n_features);
    if (n_rows > 0) require_pointer(numbers, "numbers");
    for (std::size_t i = 0; i < n_rows; ++i) {
      if (!(std::abs(numbers[i]) <= onlineforest::guided::NumberLedger::kLargest)) {
        refuse_argument("the number of row " + std::to_string(i) + " is not in [-1e150, 1e150]");
      }
    }
    model.learn(checked, {numbers, n_rows}, weights_of(weights, n_rows), Call(checked_threads(n_threads)));
  });
}

of_status of_save(const of_forest* forest, const char* path) {
  return guarded([&] {
    require_pointer(forest, "forest");
    require_pointer(path, "path");
    const std::string name = path;
    const of_status status = guarded(name, OF_INTERNAL_ERROR, [&] { forest->model->save(name); });
    if (status != OF_OK) throw Failure(status, std::string(last_error));
  });
}

}  // extern "C"
