// The metadata of a model file, as values: options of the core forest, features, counts. Must not know arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "container.hpp"
#include "guided/options.hpp"
#include "json.hpp"

namespace onlineforest::capi {

// The value of a key. Throws Failure if there is none.
[[nodiscard]] const std::string& text_at(const Metadata& metadata, std::string_view key);
[[nodiscard]] bool has_key(const Metadata& metadata, std::string_view key);
void set_text(Metadata& metadata, std::string_view key, std::string text);
[[nodiscard]] Json json_at(const Metadata& metadata, std::string_view key, Allowance& memory);

[[nodiscard]] of_kind kind_in(const Metadata& metadata);
// Throws Failure unless these are the keys of a forest of this kind: others would be lost.
void check_keys(const Metadata& metadata, of_kind kind);

struct Settings {
  guided::Options options;
  Json class_weight;  // of a classifier
};

// The core forest that the parameters, the seed and the features of a file describe.
[[nodiscard]] Settings settings_in(const Metadata& metadata, of_kind kind, Allowance& memory);

// For readers of a file's header alone.
struct Counts {
  std::uint64_t n_seen, n_stored, n_ids, n_distinct;
};
[[nodiscard]] std::string json_of(const Counts& counts);
void check_counts(const Metadata& metadata, const Counts& counts, Allowance& memory);

}  // namespace onlineforest::capi
