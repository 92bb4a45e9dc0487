#include "classes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "metadata.hpp"
#include "sha256.hpp"

namespace onlineforest::capi {

namespace {

// What labels of a type are made of; nothing if the type is unknown.
enum class LabelKind { kText, kWhole, kReal, kBool };

[[nodiscard]] std::optional<LabelKind> label_kind(std::string_view type) {
  if (type == "object") return LabelKind::kText;
  if (type.size() < 3) return {};
  switch (type[1]) {
    case 'U':
      return LabelKind::kText;
    case 'i':
    case 'u':
      return LabelKind::kWhole;
    case 'f':
      return LabelKind::kReal;
    case 'b':
      return LabelKind::kBool;
    default:
      return {};
  }
}

[[nodiscard]] bool is_of_kind(const Json& label, LabelKind kind) {
  switch (kind) {
    case LabelKind::kText:
      return label.is(Json::Kind::kText);
    case LabelKind::kWhole:
      return label.is_whole();
    case LabelKind::kReal:
      return label.is_real() && std::floor(label.number()) == label.number();
    case LabelKind::kBool:
      return label.is(Json::Kind::kBool);
  }
  return false;
}

// Bytes that are equal for equal labels: 1, true and 1.0 are the same label, "1" is another one. Nothing if a value
// cannot be a label.
[[nodiscard]] std::optional<std::string> canonical_bytes(const Json& label) {
  if (label.is(Json::Kind::kText)) return "text " + label.text;
  if (label.is(Json::Kind::kBool)) return label.is_true() ? "number 1" : "number 0";
  if (label.is_whole()) return "number " + (label.text == "-0" ? "0" : label.text);
  if (!label.is_real() || std::floor(label.number()) != label.number()) return {};
  char digits[400];  // of the largest double, and more
  std::snprintf(digits, sizeof digits, "%.0f", label.number() + 0.0);
  return std::string("number ") + digits;
}

[[nodiscard]] bool is_less(const Json& a, const Json& b) {
  if (a.is(Json::Kind::kText)) return a.text < b.text;  // UTF-8 has the order of characters
  if (a.is(Json::Kind::kBool)) return !a.is_true() && b.is_true();
  if (!a.is_whole() || !b.is_whole()) return a.number() < b.number();
  const bool a_is_negative = a.text.starts_with('-'), b_is_negative = b.text.starts_with('-');
  if (a_is_negative != b_is_negative) return a_is_negative;
  const bool is_shorter = a.text.size() != b.text.size() ? a.text.size() < b.text.size() : a.text < b.text;
  return a_is_negative ? !is_shorter && a.text != b.text : is_shorter;
}

[[nodiscard]] std::uint64_t hash_of_free(std::size_t code) { return hash_of("no label " + std::to_string(code)); }

}  // namespace

Classes::Classes(const Metadata& metadata, std::span<const std::uint64_t> hashes, Allowance& memory)
    : n_codes_(hashes.size()) {
  Json classes = json_at(metadata, "classes", memory);
  const Json codes = json_at(metadata, "class_codes", memory);
  const Json *type = classes.find("dtype"), *values = classes.find("values");
  check(classes.keys.size() == 2 && type != nullptr && values != nullptr && values->is(Json::Kind::kList),
        "its classes cannot be read");
  type_ = type->text;
  const std::optional<LabelKind> kind = label_kind(type_);
  if (!kind) {
    throw Failure(OF_UNSUPPORTED, "its classes have the type " + quoted(type_) +
                                      ", but the C API supports only strings, whole numbers and bools");
  }
  labels_ = values->items;
  check(codes.is(Json::Kind::kList) && codes.items.size() == labels_.size(), "its classes do not have a code each");
  std::vector<bool> is_taken(n_codes_);
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    if (!is_of_kind(labels_[i], *kind)) refuse("its classes are not all of the type " + quoted(type_));
    check(i == 0 || is_less(labels_[i - 1], labels_[i]), "its classes are not sorted, or not distinct");
    const auto code = codes.items[i].whole_in(0, INT32_MAX);
    check(code && static_cast<std::size_t>(*code) < n_codes_ && !is_taken[static_cast<std::size_t>(*code)],
          "its classes do not have a code each");
    is_taken[static_cast<std::size_t>(*code)] = true;
    codes_.push_back(static_cast<std::int32_t>(*code));
    if (hashes[static_cast<std::size_t>(*code)] != hash_of(*canonical_bytes(labels_[i]))) {
      refuse("the hash of its class " + quoted(labels_[i].text) + " is wrong");
    }
  }
  for (std::size_t code = 0; code < n_codes_; ++code) {
    if (!is_taken[code] && hashes[code] != hash_of_free(code)) {
      refuse("the hash of its class code " + std::to_string(code) + ", which has no class, is wrong");
    }
  }
}

std::vector<double> Classes::weights_in(const Json& class_weight) const {
  const Json* items = class_weight.keys.size() == 1 ? class_weight.find("dict") : nullptr;
  if (items == nullptr) {
    check(class_weight.is(Json::Kind::kNull) || (class_weight.is(Json::Kind::kText) && class_weight.text == "balanced"),
          "its parameter 'class_weight' cannot be read");
    return {};
  }
  check(items->is(Json::Kind::kList), "its parameter 'class_weight' cannot be read");
  std::vector<std::optional<std::string>> names;
  for (const Json& label : labels_) names.push_back(canonical_bytes(label));
  std::vector<double> weights(size(), 1.0);
  for (const Json& item : items->items) {
    check(item.is(Json::Kind::kList) && item.items.size() == 2 && item.items[1].is(Json::Kind::kNumber) &&
              item.items[1].number() >= 0.0,
          "its parameter 'class_weight' cannot be read");
    const std::optional<std::string> name = canonical_bytes(item.items[0]);
    const auto found = std::ranges::find(names, name);
    if (name && found != names.end()) {
      weights[static_cast<std::size_t>(found - names.begin())] = item.items[1].number();
    }
  }
  return weights;
}

void Classes::check_declared(const Metadata& metadata, std::span<const std::uint8_t> are_declared,
                             Allowance& memory) const {
  const Json codes = json_at(metadata, "declared_codes", memory);
  check(codes.is(Json::Kind::kList) && are_declared.size() == n_codes_, "its declared_codes cannot be read");
  std::vector<std::uint8_t> flags(n_codes_, 0);
  for (const Json& code : codes.items) {
    const auto number = code.whole_in(0, INT32_MAX);
    if (!number || static_cast<std::size_t>(*number) >= n_codes_) {
      refuse("its declared_codes are not all in [0, " + std::to_string(n_codes_) + ")");
    }
    flags[static_cast<std::size_t>(*number)] = 1;
  }
  check(std::ranges::equal(flags, are_declared), "its declared_codes are not those of its array 'are_declared'");
}

void Classes::check_known(std::span<const std::uint8_t> are_known) const {
  std::vector<std::uint8_t> have_class(n_codes_, 0);
  for (const std::int32_t code : codes_) have_class[static_cast<std::size_t>(code)] = 1;
  for (std::size_t code = 0; code < n_codes_; ++code) {
    if (are_known[code] != 0 && have_class[code] == 0) {
      refuse("its class code " + std::to_string(code) + " is in use, but has no class");
    }
  }
}

std::string Classes::json_of_labels(const std::vector<std::size_t>& which) const {
  std::string type = type_, values;
  std::size_t width = 1;
  for (const std::size_t i : which) {
    const Json& label = labels_[i];
    if (!values.empty()) values += ',';
    values += label.is(Json::Kind::kText) ? json_text(label.text, true) : label.text;
    width = std::max(width, n_characters(label.text));
  }
  // As NumPy: an array of strings is as wide as the longest.
  if (type != "object" && type[1] == 'U') type = type.substr(0, 2) + std::to_string(width);
  return R"({"dtype":")" + type + R"(","values":[)" + values + "]}";
}

void Classes::write(std::span<const std::uint8_t> are_known, Metadata& metadata,
                    std::span<std::uint64_t> hashes) const {
  std::vector<std::size_t> known;
  for (std::size_t i = 0; i < size(); ++i) {
    const auto code = static_cast<std::size_t>(codes_[i]);
    if (are_known[code] != 0) {
      known.push_back(i);
    } else {
      hashes[code] = hash_of_free(code);
    }
  }
  if (known.size() == size()) return;  // the metadata are still right
  std::string codes;
  for (const std::size_t i : known) {
    if (!codes.empty()) codes += ',';
    codes += std::to_string(codes_[i]);
  }
  set_text(metadata, "classes", json_of_labels(known));
  set_text(metadata, "class_codes", '[' + codes + ']');
}

}  // namespace onlineforest::capi
