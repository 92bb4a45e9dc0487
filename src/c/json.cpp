#include "json.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <system_error>

#include "failure.hpp"

namespace onlineforest::capi {

namespace {

constexpr std::size_t kMostDigits = 40;
constexpr int kMostLevels = 32;

[[nodiscard]] bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(std::string& text, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 63));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 63));
    put(0x80 | (code & 63));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 63));
    put(0x80 | (code >> 6 & 63));
    put(0x80 | (code & 63));
  }
}

// The character at the beginning of a text and how many bytes it has; 0 bytes if they are no UTF-8.
struct Character {
  std::uint32_t code;
  std::size_t n_bytes;
};

[[nodiscard]] Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  if (byte(0) < 0x80) return {byte(0), 1};
  const std::size_t n = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  constexpr std::array<std::uint32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
  if (byte(0) < 0xc0 || byte(0) >= 0xf8 || text.size() < n) return {0, 0};
  std::uint32_t code = byte(0) & (0xffu >> (n + 1));
  for (std::size_t i = 1; i < n; ++i) {
    if (byte(i) >> 6 != 2) return {0, 0};
    code = code << 6 | (byte(i) & 63);
  }
  return code < least[n] || code > 0x10ffff ? Character{0, 0} : Character{code, n};
}

[[nodiscard]] bool is_surrogate(std::uint32_t code) { return code >= 0xd800 && code < 0xe000; }

class JsonReader {
 public:
  JsonReader(std::string_view text, const std::string& what, Allowance& memory)
      : text_(text), what_(what), memory_(memory) {}

  [[nodiscard]] Json read() {
    Json value = read_value(1);
    skip_space();
    if (at_ != text_.size()) fail("has more than one value");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const { refuse(what_ + " " + why); }
  [[noreturn]] void fail_here() const { fail("is not JSON at its byte " + std::to_string(at_)); }

  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  [[nodiscard]] bool take(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  void skip_space() {
    while (at_ < text_.size() && (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r')) ++at_;
  }

  [[nodiscard]] Json read_value(int level) {
    // A vector may take twice what it holds.
    memory_.take(2 * sizeof(Json));
    skip_space();
    Json value;
    switch (peek()) {
      case '{':
      case '[':
        if (level > kMostLevels) fail("is nested more than " + std::to_string(kMostLevels) + " levels deep");
        return peek() == '{' ? read_object(level) : read_list(level);
      case '"':
        value.kind = Json::Kind::kText;
        value.text = read_text();
        return value;
      case 't':
        return read_word("true", Json::Kind::kBool);
      case 'f':
        return read_word("false", Json::Kind::kBool);
      case 'n':
        return read_word("null", Json::Kind::kNull);
      default:
        return read_number();
    }
  }

  [[nodiscard]] Json read_word(std::string_view word, Json::Kind kind) {
    if (text_.substr(at_, word.size()) != word) fail_here();
    at_ += word.size();
    Json value;
    value.kind = kind;
    value.text = word;
    return value;
  }

  void skip_digits() {
    if (!is_digit(peek())) fail_here();
    while (is_digit(peek())) ++at_;
  }

  [[nodiscard]] Json read_number() {
    const std::size_t begin = at_;
    (void)take('-');
    if (!take('0')) skip_digits();
    if (take('.')) skip_digits();
    if (take('e') || take('E')) {
      if (!take('+')) (void)take('-');
      skip_digits();
    }
    Json value;
    value.kind = Json::Kind::kNumber;
    const std::string_view literal = text_.substr(begin, at_ - begin);
    if (literal.size() > kMostDigits) {
      fail("has a number of " + std::to_string(literal.size()) + " characters, more than " +
           std::to_string(kMostDigits));
    }
    value.text = literal;
    if (!std::isfinite(value.number())) fail("has the number " + value.text + ", which is not finite");
    return value;
  }

  [[nodiscard]] std::uint32_t read_four_digits() {
    const std::string_view digits = text_.substr(at_, 4);
    std::uint32_t code = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (digits.size() < 4 || error != std::errc() || end != digits.data() + 4) fail_here();
    at_ += 4;
    return code;
  }

  void read_escape(std::string& text) {
    const char c = peek();
    ++at_;
    constexpr std::string_view kNames = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    if (const std::size_t place = kNames.find(c); c != '\0' && place != std::string_view::npos) {
      text += kMeanings[place];
      return;
    }
    if (c != 'u') {
      --at_;
      fail_here();
    }
    std::uint32_t code = read_four_digits();
    if (code >= 0xd800 && code < 0xdc00 && text_.substr(at_, 2) == "\\u") {
      at_ += 2;
      const std::uint32_t low = read_four_digits();
      if (low >= 0xdc00 && low < 0xe000) {
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      } else {
        at_ -= 6;
      }
    }
    append_utf8(text, code);
  }

  [[nodiscard]] std::string read_text() {
    std::string text;
    const std::size_t begin = at_++;
    while (!take('"')) {
      if (at_ == text_.size() || static_cast<unsigned char>(peek()) < 0x20) fail_here();
      if (take('\\')) {
        read_escape(text);
      } else {
        text += text_[at_++];
      }
    }
    memory_.take(2 * (at_ - begin));
    return text;
  }

  [[nodiscard]] Json read_list(int level) {
    Json list;
    list.kind = Json::Kind::kList;
    ++at_;
    skip_space();
    if (take(']')) return list;
    do {
      list.items.push_back(read_value(level + 1));
      skip_space();
    } while (take(','));
    if (!take(']')) fail_here();
    return list;
  }

  [[nodiscard]] Json read_object(int level) {
    Json object;
    object.kind = Json::Kind::kObject;
    ++at_;
    skip_space();
    if (take('}')) return object;
    do {
      skip_space();
      if (peek() != '"') fail_here();
      memory_.take(2 * sizeof(std::string) + sizeof(std::string_view));
      object.keys.push_back(read_text());
      skip_space();
      if (!take(':')) fail_here();
      object.items.push_back(read_value(level + 1));
      skip_space();
    } while (take(','));
    if (!take('}')) fail_here();
    std::vector<std::string_view> sorted(object.keys.begin(), object.keys.end());
    std::ranges::sort(sorted);
    const auto twice = std::ranges::adjacent_find(sorted);
    if (twice != sorted.end()) fail("has the key " + in_quotes(*twice) + " twice");
    return object;
  }

  std::string_view text_;
  const std::string& what_;
  Allowance& memory_;
  std::size_t at_ = 0;
};

}  // namespace

bool Json::is_whole() const { return kind == Kind::kNumber && text.find_first_of(".eE") == std::string::npos; }

std::optional<std::int64_t> Json::whole_in(std::int64_t least, std::int64_t most) const {
  std::int64_t value = 0;
  if (!is_whole() || std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) return {};
  return value < least || value > most ? std::nullopt : std::optional(value);
}

std::optional<std::uint64_t> Json::word() const {
  std::uint64_t value = 0;
  if (!is_whole() || std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) return {};
  return value;
}

double Json::number() const {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc::result_out_of_range) return value;
  // Too large or too small: from_chars does not say which.
  const std::size_t exponent = text.find_first_of("eE");
  const bool is_small = exponent != std::string::npos && text[exponent + 1] == '-';
  return is_small ? 0.0 : std::numeric_limits<double>::infinity();
}

const Json* Json::find(std::string_view key) const {
  const auto found = std::ranges::find(keys, key);
  return found == keys.end() ? nullptr : &items[static_cast<std::size_t>(found - keys.begin())];
}

Json parse_json(std::string_view text, const std::string& what, Allowance& memory) {
  return JsonReader(text, what, memory).read();
}

bool is_utf8(std::string_view text, bool may_have_surrogates) {
  while (!text.empty()) {
    const auto [code, n_bytes] = first_character(text);
    if (n_bytes == 0 || (!may_have_surrogates && is_surrogate(code))) return false;
    text.remove_prefix(n_bytes);
  }
  return true;
}

std::size_t n_characters(std::string_view utf8) {
  return static_cast<std::size_t>(
      std::ranges::count_if(utf8, [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; }));
}

std::string json_text(std::string_view utf8, bool in_ascii) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string result = "\"";
  const auto escape = [&](std::uint32_t code) {
    result += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) result += kDigits[code >> shift & 15];
  };
  while (!utf8.empty()) {
    const auto [code, n_bytes] = first_character(utf8);
    constexpr std::string_view kMeanings = "\"\\\b\f\n\r\t", kNames = "\"\\bfnrt";
    const std::size_t place = code < 0x80 ? kMeanings.find(static_cast<char>(code)) : std::string_view::npos;
    if (n_bytes == 0) throw std::logic_error("text is not UTF-8");
    if (place != std::string_view::npos) {
      result += '\\';
      result += kNames[place];
    } else if (code < 0x20 || (in_ascii && code >= 0x80 && code < 0x10000)) {
      escape(code);
    } else if (in_ascii && code >= 0x10000) {
      escape(0xd800 + ((code - 0x10000) >> 10));
      escape(0xdc00 + ((code - 0x10000) & 0x3ff));
    } else {
      result += utf8.substr(0, n_bytes);
    }
    utf8.remove_prefix(n_bytes);
  }
  return result + '"';
}

std::string json_number(double number) {
  std::array<char, 400> buffer;
  const double size = std::abs(number);
  const bool is_plain = size == 0.0 || (size >= 1e-4 && size < 1e16);
  const auto format = is_plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, format);
  if (error != std::errc()) throw std::logic_error("a number takes more than 400 characters");
  std::string text(buffer.data(), end);
  if (is_plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

}  // namespace onlineforest::capi
