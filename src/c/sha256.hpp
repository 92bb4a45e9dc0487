// SHA-256 (FIPS 180-4). Must not know what is hashed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace onlineforest::capi {

class Sha256 {
 public:
  using Digest = std::array<std::uint8_t, 32>;

  void update(std::span<const std::uint8_t> bytes);
  void update(std::string_view text) {
    update(std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
  }
  // The digest of all bytes so far. Nothing may be added afterwards.
  [[nodiscard]] Digest finish();

 private:
  static constexpr std::size_t kBlock = 64;

  void add_block(const std::uint8_t* block);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, kBlock> pending_{};  // bytes that do not fill a block yet
  std::size_t n_pending_ = 0;
  std::uint64_t n_bytes_ = 0;
};

[[nodiscard]] std::string hexadecimal(const Sha256::Digest& digest);
// The first eight bytes of the digest of a text, the lowest first.
[[nodiscard]] std::uint64_t hash_of(std::string_view text);

}  // namespace onlineforest::capi
