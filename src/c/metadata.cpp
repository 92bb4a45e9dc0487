#include "metadata.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "guided/label_calibration.hpp"

namespace onlineforest::capi {

namespace {

constexpr std::int64_t kMostCount = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kFewestTreesOfNumbers = 5;  // of a regressor that calibrates

constexpr std::array<std::string_view, 6> kCommonKeys{"library_version", "estimator", "parameters", "seed",
                                                      "features",        "counts"};
constexpr std::array<std::string_view, 4> kLabelKeys{"classes", "class_codes", "declared_codes", "calibration"};
constexpr std::array<std::string_view, 10> kCommonParameters{
    "n_estimators",         "min_samples_split", "max_samples", "calibrate", "window",
    "categorical_features", "reservoir",         "half_life",   "n_jobs",    "random_state"};
constexpr std::array<std::string_view, 2> kLabelParameters{"smoothing", "class_weight"};

[[nodiscard]] bool is_among(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

// Whether this is a state of NumPy's RandomState, as Python writes it.
[[nodiscard]] bool is_random_state(const Json& state) {
  constexpr std::size_t kWords = 624;
  const Json *key = state.find("key"), *place = state.find("pos"), *gauss = state.find("gauss");
  if (state.keys.size() != 3 || key == nullptr || place == nullptr || gauss == nullptr) return false;
  const auto is_word = [](const Json& word) { return word.whole_in(0, UINT32_MAX).has_value(); };
  if (key->items.size() != kWords || !std::ranges::all_of(key->items, is_word)) return false;
  if (!place->whole_in(0, kWords)) return false;
  if (gauss->is(Json::Kind::kNull)) return true;
  std::string_view digits = gauss->text;
  if (digits.starts_with('-')) digits.remove_prefix(1);
  if (!gauss->is(Json::Kind::kText) || !digits.starts_with("0x") || digits.size() >= 64) return false;
  double number = 0.0;
  const char* end = digits.data() + digits.size();
  const auto [read, error] = std::from_chars(digits.data() + 2, end, number, std::chars_format::hex);
  return read == end && error == std::errc() && std::isfinite(number);
}

// The parameters of an estimator: exactly those it has.
class Parameters {
 public:
  Parameters(Json json, of_kind kind) : json_(std::move(json)) {
    check(json_.is(Json::Kind::kObject), "its parameters are no object");
    const bool is_classifier = kind == OF_CLASSIFIER;
    for (const std::string& key : json_.keys) {
      if (!is_among(key, kCommonParameters) && !(is_classifier && is_among(key, kLabelParameters))) {
        refuse("its parameter " + in_quotes(key) + " is unknown");
      }
    }
    for (const std::string_view name : kCommonParameters) (void)at(name);
    for (const std::string_view name : kLabelParameters) {
      if (is_classifier) (void)at(name);
    }
    check_carried();
  }

  [[nodiscard]] const Json& at(std::string_view name) const {
    const Json* value = json_.find(name);
    if (value == nullptr) refuse("its parameter " + in_quotes(name) + " is missing");
    return *value;
  }

  [[nodiscard]] std::int64_t whole(std::string_view name, std::int64_t least) const {
    const std::optional<std::int64_t> value = at(name).whole_in(least, kMostCount);
    if (!value) {
      refuse("its parameter " + in_quotes(name) + " is " + in_quotes(at(name).text) + ", not a whole number in [" +
             std::to_string(least) + ", " + std::to_string(kMostCount) + "]");
    }
    return *value;
  }

  [[nodiscard]] double real(std::string_view name) const {
    const Json& value = at(name);
    if (!value.is(Json::Kind::kNumber)) refuse("its parameter " + in_quotes(name) + " is not a number");
    return value.number();
  }

  [[nodiscard]] bool is_null(std::string_view name) const { return at(name).is(Json::Kind::kNull); }

  [[nodiscard]] bool flag(std::string_view name) const {
    if (!at(name).is(Json::Kind::kBool)) refuse("its parameter " + in_quotes(name) + " is not true or false");
    return at(name).is_true();
  }

 private:
  // Throws unless Python could read the parameters that have no meaning here.
  void check_carried() const {
    const Json &jobs = at("n_jobs"), &seed = at("random_state"), &categories = at("categorical_features");
    const auto number = jobs.whole_in(INT64_MIN, INT64_MAX);
    check(jobs.is(Json::Kind::kNull) || (number && *number != 0), "its parameter 'n_jobs' cannot be read");
    const Json* state = seed.keys.size() == 1 ? seed.find("RandomState") : nullptr;
    check(seed.is(Json::Kind::kNull) || seed.whole_in(0, UINT32_MAX) || (state != nullptr && is_random_state(*state)),
          "its parameter 'random_state' cannot be read");
    const Json* columns = categories.keys.size() == 1 ? categories.find("list") : nullptr;
    const auto is_column = [](const Json& column) { return column.is_plain() && !column.is_real(); };
    check(categories.is(Json::Kind::kNull) || categories.is(Json::Kind::kText) ||
              (columns != nullptr && columns->is(Json::Kind::kList) && std::ranges::all_of(columns->items, is_column)),
          "its parameter 'categorical_features' cannot be read");
  }

  Json json_;
};

[[nodiscard]] KeepOptions keep_in(const Parameters& parameters) {
  const bool has_window = !parameters.is_null("window"), has_reservoir = !parameters.is_null("reservoir");
  const bool has_half_life = !parameters.is_null("half_life");
  check(!has_window || !has_reservoir, "it has a window and a reservoir, which exclude each other");
  check(!has_half_life || has_reservoir, "it has a half_life, but no reservoir");
  if (has_window) return {KeepRule::kLatest, static_cast<std::size_t>(parameters.whole("window", 1)), kInfinity};
  if (!has_reservoir) return {};
  const double half_life = has_half_life ? parameters.real("half_life") : kInfinity;
  return {KeepRule::kSample, static_cast<std::size_t>(parameters.whole("reservoir", 1)), half_life};
}

// The number of features. Throws unless all of them are numeric.
[[nodiscard]] std::size_t n_features_in(const Json& features) {
  const Json *count = features.find("count"), *type = features.find("dtype"), *names = features.find("names");
  const auto n = count == nullptr ? std::nullopt : count->whole_in(1, kMostCount);
  if (!n || type == nullptr || type->text != "float32" || names == nullptr) refuse("its features cannot be read");
  if (const Json* categorical = features.find("categorical"); categorical != nullptr) {
    throw Failure(OF_UNSUPPORTED, "the forest has " + std::to_string(categorical->items.size()) +
                                      " categorical features, but the C API supports only numeric ones");
  }
  check(features.keys.size() == 3, "its features cannot be read");
  if (names->is(Json::Kind::kNull)) return static_cast<std::size_t>(*n);
  check(names->is(Json::Kind::kList) && names->items.size() == static_cast<std::size_t>(*n),
        "it does not name each of its features");
  std::vector<std::string_view> sorted;
  for (const Json& name : names->items) {
    check(name.is(Json::Kind::kText), "one of the names of its features is not a string");
    sorted.push_back(name.text);
  }
  std::ranges::sort(sorted);
  check(std::ranges::adjacent_find(sorted) == sorted.end(), "two of the names of its features are equal");
  return static_cast<std::size_t>(*n);
}

}  // namespace

bool has_key(const Metadata& metadata, std::string_view key) {
  return std::ranges::any_of(metadata, [&](const auto& entry) { return entry.first == key; });
}

const std::string& text_at(const Metadata& metadata, std::string_view key) {
  const auto found = std::ranges::find_if(metadata, [&](const auto& entry) { return entry.first == key; });
  if (found == metadata.end()) refuse("it has no " + std::string(key));
  return found->second;
}

void set_text(Metadata& metadata, std::string_view key, std::string text) {
  const auto found = std::ranges::find_if(metadata, [&](const auto& entry) { return entry.first == key; });
  found->second = std::move(text);  // check_keys() has found it
}

Json json_at(const Metadata& metadata, std::string_view key, Allowance& memory) {
  return parse_json(text_at(metadata, key), "its " + std::string(key), memory);
}

of_kind kind_in(const Metadata& metadata) {
  const std::string& name = text_at(metadata, "estimator");
  if (name == "OnlineForestClassifier") return OF_CLASSIFIER;
  if (name == "OnlineForestRegressor") return OF_REGRESSOR;
  throw Failure(OF_UNSUPPORTED, "it holds a " + in_quotes(name) +
                                    ", but the C API supports only OnlineForestClassifier and OnlineForestRegressor");
}

void check_keys(const Metadata& metadata, of_kind kind) {
  for (const auto& [key, value] : metadata) {
    const bool is_known =
        is_among(key, kCommonKeys) || (kind == OF_CLASSIFIER && is_among(key, kLabelKeys)) || key == "position";
    if (!is_known) throw Failure(OF_UNSUPPORTED, "it has the metadata " + in_quotes(key) + ", which are unknown");
  }
  for (const std::string_view key : kCommonKeys) (void)text_at(metadata, key);
  for (const std::string_view key : kLabelKeys) {
    if (kind == OF_CLASSIFIER) (void)text_at(metadata, key);
  }
}

Settings settings_in(const Metadata& metadata, of_kind kind, Allowance& memory) {
  const Parameters parameters(json_at(metadata, "parameters", memory), kind);
  const std::optional<std::uint64_t> seed = json_at(metadata, "seed", memory).word();
  check(seed.has_value(), "its seed is not a whole number in [0, 2^64)");
  Settings settings;
  guided::Options& options = settings.options;
  options.n_trees = static_cast<std::size_t>(parameters.whole("n_estimators", 1));
  options.layout = {n_features_in(json_at(metadata, "features", memory)), 0};
  options.seed = *seed;
  options.min_samples_split = parameters.whole("min_samples_split", 2);
  options.max_samples = parameters.real("max_samples");
  options.keep = keep_in(parameters);
  const std::size_t fewest = kind == OF_CLASSIFIER ? guided::kFewestTreesToCalibrate : kFewestTreesOfNumbers;
  options.calibrates = parameters.flag("calibrate") && options.n_trees >= fewest;
  if (kind == OF_CLASSIFIER) {
    options.discount = parameters.real("smoothing") + 0.0;  // without a negative zero
    settings.class_weight = parameters.at("class_weight");
  }
  return settings;
}

std::string json_of(const Counts& counts) {
  return R"({"samples_seen":)" + std::to_string(counts.n_seen) + R"(,"samples_stored":)" +
         std::to_string(counts.n_stored) + R"(,"ids":)" + std::to_string(counts.n_ids) + R"(,"samples_distinct":)" +
         std::to_string(counts.n_distinct) + '}';
}

void check_counts(const Metadata& metadata, const Counts& counts, Allowance& memory) {
  const Json json = json_at(metadata, "counts", memory);
  const auto is_equal = [&](std::string_view key, std::uint64_t count) {
    const Json* value = json.find(key);
    return value != nullptr && value->word() == count;
  };
  check(json.keys.size() == 4 && is_equal("samples_seen", counts.n_seen) &&
            is_equal("samples_stored", counts.n_stored) && is_equal("ids", counts.n_ids) &&
            is_equal("samples_distinct", counts.n_distinct),
        "its counts are not those of its arrays");
}

}  // namespace onlineforest::capi
