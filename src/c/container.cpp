#include "container.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "json.hpp"
#include "sha256.hpp"

namespace onlineforest::capi {

namespace {

constexpr std::size_t kMostHeaderBytes = std::size_t{1} << 24;
constexpr std::size_t kMostArrays = 1000, kMostDimensions = 8;
constexpr std::size_t kDigestAt = 35, kDigestSize = 64;
constexpr std::string_view kBeforeDigest = R"({"__metadata__":{"sha256":")";
constexpr std::string_view kAfterDigest = R"(","format":"onlineforest","format_version":")";
constexpr std::size_t kVersionAt = kDigestAt + kDigestSize + kAfterDigest.size();
constexpr std::string_view kMetadata = "__metadata__";
static_assert(8 + kBeforeDigest.size() == kDigestAt);

struct ItemType {
  std::string_view name;
  std::size_t n_bytes;
};
constexpr std::array<ItemType, 8> kItemTypes{
    {{"F64", 8}, {"I64", 8}, {"U64", 8}, {"F32", 4}, {"I32", 4}, {"U32", 4}, {"U8", 1}, {"BOOL", 1}}};

[[nodiscard]] std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

[[nodiscard]] std::uint64_t length_in(Bytes file) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  return length;
}

// Throws unless the file begins like a model file.
void check_beginning(Bytes file) {
  const std::string_view text = text_of(file);
  if (file.size() <= kVersionAt) {
    refuse("it has only " + std::to_string(file.size()) + " bytes");
  }
  check(text.substr(8, kBeforeDigest.size()) == kBeforeDigest &&
            text.substr(kDigestAt + kDigestSize, kAfterDigest.size()) == kAfterDigest,
        "it does not begin like a model file of onlineforest");
}

void check_digest(Bytes file) {
  const std::string_view said = text_of(file).substr(kDigestAt, kDigestSize);
  Sha256 sha256;
  sha256.update(file.first(kDigestAt));
  sha256.update(std::string(kDigestSize, '0'));
  sha256.update(file.subspan(kDigestAt + kDigestSize));
  const std::string actual = hexadecimal(sha256.finish());
  if (actual != said) refuse("it is damaged: its SHA-256 is " + actual + ", but it says " + in_quotes(said));
}

void check_version(std::string_view version) {
  const std::string ours = std::to_string(kFormatVersion);
  check(!version.empty() && version.size() <= 9 && version.find_first_not_of("0123456789") == std::string_view::npos &&
            version[0] != '0',
        "its format_version is not a number");
  if (version == ours) return;
  const bool is_newer = version.size() > ours.size() || version > ours;
  const std::string message = "it has format " + std::string(version) + ", but ";
  if (is_newer) throw Failure(OF_UNSUPPORTED, message + "this library reads formats up to " + ours);
  throw Failure(OF_UNSUPPORTED, message + "order-free forests have format " + ours);
}

// Counts of JSON; nothing if it is another value.
[[nodiscard]] std::optional<std::vector<std::uint64_t>> counts_in(const Json* list, std::size_t most) {
  if (list == nullptr || !list->is(Json::Kind::kList) || list->items.size() > most) return {};
  std::vector<std::uint64_t> counts;
  for (const Json& item : list->items) {
    const std::optional<std::int64_t> count = item.whole_in(0, INT64_MAX);
    if (!count) return {};
    counts.push_back(static_cast<std::uint64_t>(*count));
  }
  return counts;
}

// The number of items of a shape; nothing if it does not fit 63 bits.
[[nodiscard]] std::optional<std::uint64_t> n_items(const std::vector<std::uint64_t>& shape) {
  std::uint64_t product = 1;
  for (const std::uint64_t n : shape) {
    if (n != 0 && product > static_cast<std::uint64_t>(INT64_MAX) / n) return {};
    product *= n;
  }
  return product;
}

[[nodiscard]] Array array_in(const std::string& name, const Json& entry, Bytes data) {
  const std::string whose = "its array " + in_quotes(name);
  const Json* type = entry.find("dtype");
  const auto shape = counts_in(entry.find("shape"), kMostDimensions);
  const auto offsets = counts_in(entry.find("data_offsets"), 2);
  if (entry.keys.size() != 3 || type == nullptr || !type->is(Json::Kind::kText) || !shape || !offsets) {
    refuse(whose + " must have a dtype, a shape of at most 8 counts, data_offsets, and nothing else");
  }
  const auto known = std::ranges::find(kItemTypes, type->text, &ItemType::name);
  if (known == kItemTypes.end()) refuse(whose + " has dtype " + in_quotes(type->text) + ", which is unknown");
  if (offsets->size() != 2 || (*offsets)[0] > (*offsets)[1] || (*offsets)[1] > data.size()) {
    refuse(whose + " lies outside the " + std::to_string(data.size()) + " bytes of the data");
  }
  const std::uint64_t begin = (*offsets)[0], n_bytes = (*offsets)[1] - begin;
  const auto n = n_items(*shape);
  if (!n || *n != n_bytes / known->n_bytes || n_bytes % known->n_bytes != 0) {
    refuse(whose + " has " + std::to_string(n_bytes) + " bytes, which is not what its shape and dtype take");
  }
  return {name, known->name, known->n_bytes, *shape, data.subspan(begin, n_bytes)};
}

// Throws unless the arrays fill the data without holes or overlaps.
void check_tiling(const std::vector<Array>& arrays, Bytes data) {
  std::vector<Bytes> parts;
  for (const Array& array : arrays) parts.push_back(array.bytes);
  std::ranges::sort(parts, [](Bytes a, Bytes b) {
    return a.data() != b.data() ? a.data() < b.data() : a.size() < b.size();  // empty ones first
  });
  const std::uint8_t* filled = data.data();
  for (const Bytes part : parts) {
    check(part.data() == filled, "its arrays have holes between them, or overlap");
    filled += part.size();
  }
  check(filled == data.data() + data.size(), "its arrays do not fill its data");
}

}  // namespace

Contents read_container(Bytes file, Allowance& memory) {
  check_beginning(file);
  const std::string_view version = text_of(file).substr(kVersionAt, 16);
  check_version(version.substr(0, version.find('"')));
  check_digest(file);
  const std::uint64_t n_header = length_in(file);
  if (n_header > kMostHeaderBytes || n_header > file.size() - 8) {
    refuse("its header has " + std::to_string(n_header) + " bytes, but may have " +
           std::to_string(std::min<std::uint64_t>(kMostHeaderBytes, file.size() - 8)));
  }
  std::string_view text = text_of(file.subspan(8, n_header));
  check(is_utf8(text, false), "its header is not UTF-8");
  text = text.substr(0, text.find_last_not_of(' ') + 1);
  check(text.ends_with('}'), "its header does not end with } and spaces");
  const Json header = parse_json(text, "its header", memory);
  const Json* metadata = header.find(kMetadata);
  check(metadata != nullptr && metadata->is(Json::Kind::kObject) && metadata->keys.size() >= 3,
        "its header has no metadata");
  if (header.keys.size() > kMostArrays + 1) {
    refuse("it has " + std::to_string(header.keys.size() - 1) + " arrays, more than " + std::to_string(kMostArrays));
  }
  Contents contents;
  for (std::size_t i = 0; i < metadata->keys.size(); ++i) {
    const Json& value = metadata->items[i];
    check(value.is(Json::Kind::kText), "one of its metadata is not a string");
    check(is_utf8(metadata->keys[i], false) && is_utf8(value.text, false), "one of its metadata is not Unicode");
    if (i >= 3) contents.metadata.emplace_back(metadata->keys[i], value.text);  // after the digest and the format
  }
  const Bytes data = file.subspan(8 + n_header);
  for (std::size_t i = 0; i < header.keys.size(); ++i) {
    if (header.keys[i] != kMetadata) contents.arrays.push_back(array_in(header.keys[i], header.items[i], data));
  }
  check_tiling(contents.arrays, data);
  return contents;
}

std::vector<std::uint8_t> beginning_of(const Metadata& metadata, std::vector<Array>& arrays) {
  std::ranges::stable_sort(arrays, std::greater(), &Array::item_bytes);
  std::string text(kBeforeDigest);
  text += std::string(kDigestSize, '0');
  text += kAfterDigest;
  text += std::to_string(kFormatVersion) + '"';
  for (const auto& [key, value] : metadata) text += ',' + json_text(key, false) + ':' + json_text(value, false);
  text += '}';
  std::size_t begin = 0;
  for (const Array& array : arrays) {
    text += ',' + json_text(array.name, false) + R"(:{"dtype":")" + std::string(array.type) + R"(","shape":[)";
    for (std::size_t i = 0; i < array.shape.size(); ++i) {
      if (i > 0) text += ',';
      text += std::to_string(array.shape[i]);
    }
    text += R"(],"data_offsets":[)" + std::to_string(begin) + ',';
    begin += array.bytes.size();
    text += std::to_string(begin) + "]}";
  }
  text += '}';
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > kMostHeaderBytes) {
    throw Failure(OF_INVALID_ARGUMENT, "the header would have " + std::to_string(text.size()) +
                                           " bytes, but may have " + std::to_string(kMostHeaderBytes));
  }
  std::vector<std::uint8_t> result(8 + text.size());
  const std::uint64_t length = text.size();
  std::memcpy(result.data(), &length, sizeof length);
  std::ranges::copy(text, result.begin() + 8);
  Sha256 sha256;
  sha256.update(result);
  for (const Array& array : arrays) sha256.update(array.bytes);
  std::ranges::copy(hexadecimal(sha256.finish()), result.begin() + kDigestAt);
  return result;
}

}  // namespace onlineforest::capi
