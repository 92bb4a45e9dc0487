// JSON from untrusted files, and back. Must not know what the JSON describes.
//
// Stricter than the standard: duplicate keys, numbers that are not finite or have more than 40 characters, and more
// than 32 levels are errors. Each value takes memory from an allowance before it is made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/allowance.hpp"

namespace onlineforest::capi {

class Json {
 public:
  enum class Kind : std::uint8_t { kNull, kBool, kNumber, kText, kList, kObject };

  Kind kind = Kind::kNull;
  std::string text;               // of a text, in UTF-8; of all others but lists and objects, as it was written
  std::vector<Json> items;        // of a list; the values of an object
  std::vector<std::string> keys;  // of an object, in the order of the file

  [[nodiscard]] bool is(Kind other) const { return kind == other; }
  // Whether it is a bool, a number or a text.
  [[nodiscard]] bool is_plain() const { return kind >= Kind::kBool && kind <= Kind::kText; }
  [[nodiscard]] bool is_true() const { return kind == Kind::kBool && text == "true"; }
  // Whether it is a number without a point or an exponent, as Python's int.
  [[nodiscard]] bool is_whole() const;
  [[nodiscard]] bool is_real() const { return kind == Kind::kNumber && !is_whole(); }
  // The number, if it is a whole one in [least, most].
  [[nodiscard]] std::optional<std::int64_t> whole_in(std::int64_t least, std::int64_t most) const;
  [[nodiscard]] std::optional<std::uint64_t> word() const;
  // The number as the nearest double. Only for numbers.
  [[nodiscard]] double number() const;
  // The value of a key; nullptr if there is none, or if this is no object.
  [[nodiscard]] const Json* find(std::string_view key) const;
};

// `what` begins the messages of failures: "its header".
[[nodiscard]] Json parse_json(std::string_view text, const std::string& what, Allowance& memory);

// Whether bytes are UTF-8. Python's ids and labels may also have surrogates.
[[nodiscard]] bool is_utf8(std::string_view text, bool may_have_surrogates);
[[nodiscard]] std::size_t n_characters(std::string_view utf8);

// Text as Python writes it: in ASCII, or all but quotes, backslashes and control characters as they are.
[[nodiscard]] std::string json_text(std::string_view utf8, bool in_ascii);
// A number as Python writes it: the shortest text that is read as the same number.
[[nodiscard]] std::string json_number(double number);

}  // namespace onlineforest::capi
