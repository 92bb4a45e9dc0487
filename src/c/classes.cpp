#include "classes.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>

#include "metadata.hpp"
#include "sha256.hpp"

namespace onlineforest::capi {

namespace {

constexpr std::size_t kWideEnough = 4096;                      // characters of a type of text that are always accepted
constexpr std::size_t kMostLabelBytes = std::size_t{1} << 28;  // of an array of all labels

// The type of labels as NumPy writes it, such as <U7 or <i8: what they are made of, and how large they are.
struct LabelType {
  char kind;         // U, i, u, f or b; O for objects, which are text
  std::size_t size;  // characters of a text, bytes of the others
};

[[nodiscard]] std::optional<LabelType> label_type(std::string_view name) {
  if (name == "object") return LabelType{'O', sizeof(void*)};
  std::size_t size = 0;
  const bool has_order = name.size() >= 3 && name.size() <= 10 && std::string_view("<>|").find(name[0]) != name.npos;
  if (!has_order ||
      std::from_chars(name.data() + 2, name.data() + name.size(), size).ptr != name.data() + name.size()) {
    return {};
  }
  const bool is_power = size == 1 || size == 2 || size == 4 || size == 8 || size == 16;
  const bool is_known = name[2] != '0' && ((name[1] == 'U' && size > 0) || (name[1] == 'b' && size == 1) ||
                                           ((name[1] == 'i' || name[1] == 'u') && is_power && size < 16) ||
                                           (name[1] == 'f' && is_power && size > 1));
  return is_known ? std::optional(LabelType{name[1], size}) : std::nullopt;
}

[[nodiscard]] bool fits_whole(const Json& label, const LabelType& type) {
  const unsigned n_bits = 8 * static_cast<unsigned>(type.size);
  if (type.kind == 'u') return label.word() && (n_bits == 64 || *label.word() >> n_bits == 0);
  const std::int64_t most = INT64_MAX >> (64 - n_bits);
  return label.whole_in(-most - 1, most).has_value();
}

// Whether a whole number has no more digits than a type of real numbers holds.
[[nodiscard]] bool fits_real(double number, const LabelType& type) {
  if (std::floor(number) != number) return false;
  if (type.size >= 8) return true;
  const int n_digits = type.size == 4 ? 24 : 11, most_exponent = type.size == 4 ? 128 : 16;
  int exponent = 0;
  const double scaled = std::ldexp(std::frexp(number, &exponent), n_digits);
  return exponent <= most_exponent && std::floor(scaled) == scaled;
}

[[nodiscard]] bool is_of_type(const Json& label, const LabelType& type) {
  switch (type.kind) {
    case 'O':
      return label.is(Json::Kind::kText);
    case 'U':  // zeros at the end would be cut off
      return label.is(Json::Kind::kText) && !label.text.ends_with('\0') && n_characters(label.text) <= type.size;
    case 'b':
      return label.is(Json::Kind::kBool);
    case 'f':
      return label.is_real() && fits_real(label.number(), type);
    default:
      return label.is_whole() && fits_whole(label, type);
  }
}

// Whether an array of the labels would take far more memory than the labels.
[[nodiscard]] bool is_too_wide(const std::vector<Json>& labels, const LabelType& type) {
  std::size_t longest = kWideEnough;
  for (const Json& label : labels) longest = std::max(longest, n_characters(label.text));
  const std::size_t n_bytes = type.kind == 'U' ? 4 * type.size : type.size;
  return (type.kind == 'U' && type.size > longest) || n_bytes * labels.size() > kMostLabelBytes;
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
  const std::optional<LabelType> label = label_type(type_);
  if (!label) {
    throw Failure(OF_UNSUPPORTED, "its classes have the type " + in_quotes(type_) +
                                      ", but the C API supports only strings, whole numbers and bools");
  }
  labels_ = values->items;
  check(!is_too_wide(labels_, *label), "its classes have a type that is too wide for them");
  check(codes.is(Json::Kind::kList) && codes.items.size() == labels_.size(), "its classes do not have a code each");
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    if (!is_of_type(labels_[i], *label)) refuse("its classes are not all of the type " + in_quotes(type_));
    check(i == 0 || is_less(labels_[i - 1], labels_[i]), "its classes are not sorted, or not distinct");
  }
  std::vector<bool> is_taken(n_codes_);
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    const auto code = codes.items[i].whole_in(0, INT32_MAX);
    check(code && static_cast<std::size_t>(*code) < n_codes_ && !is_taken[static_cast<std::size_t>(*code)],
          "its classes do not have a code each");
    is_taken[static_cast<std::size_t>(*code)] = true;
    codes_.push_back(static_cast<std::int32_t>(*code));
    if (hashes[static_cast<std::size_t>(*code)] != hash_of(*canonical_bytes(labels_[i]))) {
      refuse("the hash of its class " + in_quotes(labels_[i].text) + " is wrong");
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
    check(item.is(Json::Kind::kList) && item.items.size() == 2 && item.items[0].is_plain() &&
              item.items[1].is(Json::Kind::kNumber) && item.items[1].number() >= 0.0,
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
