#include "sha256.hpp"

#include <algorithm>
#include <bit>

namespace onlineforest::capi {

namespace {

constexpr std::array<std::uint32_t, 64> kRoundConstants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

}  // namespace

void Sha256::add_block(const std::uint8_t* block) {
  std::array<std::uint32_t, 64> w;
  for (std::size_t t = 0; t < 16; ++t) {
    w[t] = static_cast<std::uint32_t>(block[4 * t]) << 24 | static_cast<std::uint32_t>(block[4 * t + 1]) << 16 |
           static_cast<std::uint32_t>(block[4 * t + 2]) << 8 | static_cast<std::uint32_t>(block[4 * t + 3]);
  }
  for (std::size_t t = 16; t < 64; ++t) {
    const std::uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ w[t - 15] >> 3;
    const std::uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ w[t - 2] >> 10;
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t t = 0; t < 64; ++t) {
    const std::uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t choice = (e & f) ^ (~e & g), majority = (a & b) ^ (a & c) ^ (b & c);
    const std::uint32_t t1 = h + sum1 + choice + kRoundConstants[t] + w[t], t2 = sum0 + majority;
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const std::array<std::uint32_t, 8> change{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state_[i] += change[i];
}

void Sha256::update(std::span<const std::uint8_t> bytes) {
  n_bytes_ += bytes.size();
  if (n_pending_ > 0) {
    const std::size_t n = std::min(bytes.size(), kBlock - n_pending_);
    std::copy_n(bytes.begin(), n, pending_.begin() + static_cast<std::ptrdiff_t>(n_pending_));
    n_pending_ += n;
    bytes = bytes.subspan(n);
    if (n_pending_ < kBlock) return;
    add_block(pending_.data());
    n_pending_ = 0;
  }
  for (; bytes.size() >= kBlock; bytes = bytes.subspan(kBlock)) add_block(bytes.data());
  std::ranges::copy(bytes, pending_.begin());
  n_pending_ = bytes.size();
}

Sha256::Digest Sha256::finish() {
  const std::uint64_t n_bits = 8 * n_bytes_;
  std::array<std::uint8_t, kBlock + 8> padding{0x80};
  const std::size_t n_zeros = (kBlock + 55 - n_pending_) % kBlock;  // so that the length ends a block
  for (std::size_t i = 0; i < 8; ++i) padding[1 + n_zeros + i] = static_cast<std::uint8_t>(n_bits >> (56 - 8 * i));
  update(std::span(padding).first(1 + n_zeros + 8));
  Digest digest;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
  }
  return digest;
}

std::string hexadecimal(const Sha256::Digest& digest) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : digest) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::uint64_t hash_of(std::string_view text) {
  Sha256 sha256;
  sha256.update(text);
  const Sha256::Digest digest = sha256.finish();
  std::uint64_t hash = 0;
  for (std::size_t i = 8; i-- > 0;) hash = hash << 8 | digest[i];
  return hash;
}

}  // namespace onlineforest::capi
