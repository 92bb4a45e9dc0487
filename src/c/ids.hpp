// The ids of samples, which are carried from file to file. Must not know forests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace onlineforest::capi {

// An id is an s and a string, or an i and a number in hexadecimal. All of them are in one text.
struct Ids {
  std::vector<std::uint8_t> text;
  std::vector<std::uint64_t> ends;    // of each in the text
  std::vector<std::int64_t> serials;  // of its sample

  // Throws Failure unless there are as many distinct ids as distinct serials.
  void check() const;
  // Those whose samples are stored, in the order of serials: equal ids give equal files.
  [[nodiscard]] Ids only(std::span<const std::uint8_t> are_stored) const;
};

}  // namespace onlineforest::capi
