#include <vector>

#include "base/block_arena.hpp"
#include "testing.hpp"

using BlockArena = onlineforest::BlockArena<std::uint32_t>;

namespace {

TEST_CASE("a block grows and shrinks like a vector") {
  BlockArena arena;
  for (std::uint32_t place = 0; place < 3; ++place) {
    std::vector<std::uint32_t> expected{7};
    BlockArena::Offset block = arena.allocate(1);
    arena.data(block)[0] = 7;
    for (std::uint32_t i = 0; i < 100; ++i) {
      const std::uint32_t size = static_cast<std::uint32_t>(expected.size());
      const std::uint32_t position = place == 0 ? 0 : place == 1 ? size : size / 2;
      block = arena.insert(block, size, position, i);
      expected.insert(expected.begin() + position, i);
      CHECK(std::equal(expected.begin(), expected.end(), arena.data(block)));
    }
    while (expected.size() > 1) {
      const std::uint32_t size = static_cast<std::uint32_t>(expected.size());
      const std::uint32_t position = place == 0 ? 0 : place == 1 ? size - 1 : size / 2;
      block = arena.erase(block, size, position);
      expected.erase(expected.begin() + position);
      CHECK(std::equal(expected.begin(), expected.end(), arena.data(block)));
    }
  }
}

TEST_CASE("a released block is used again") {
  BlockArena arena;
  const BlockArena::Offset block = arena.allocate(5);
  arena.release(block, 6);
  CHECK(arena.allocate(8) == block);
  CHECK(arena.allocate(8) != block);
}

}  // namespace
