// Moves that keep slots dense when some are removed. Must not know what the slots hold.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "base/types.hpp"

namespace onlineforest {

// The item in slot `from` moves to slot `to`.
struct Move {
  Slot from, to;
};

// The moves that keep `n` slots dense when the slots `gone` (in decreasing order) are removed: items of the last
// remaining slots move to the removed slots. The moves come in decreasing order of `from`.
[[nodiscard]] inline std::vector<Move> moves_after(std::span<const Slot> gone, std::size_t n) {
  std::vector<Move> moves;
  Slot last = static_cast<Slot>(n) - 1;
  std::size_t next = 0;  // gone[next] is the largest removed slot that is not behind `last`
  for (std::size_t i = gone.size(); i > next; --i) {
    while (next < i && gone[next] == last) {
      ++next;
      --last;
    }
    if (next == i) break;
    moves.push_back({last--, gone[i - 1]});
  }
  return moves;
}

// The slot, after the moves, of the item that was in `slot`.
[[nodiscard]] inline Slot moved(Slot slot, std::span<const Move> moves) {
  const auto move = std::ranges::lower_bound(moves, slot, std::greater(), &Move::from);
  return move != moves.end() && move->from == slot ? move->to : slot;
}

}  // namespace onlineforest
