// Which samples a forest keeps, from the arguments of its constructor.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

#include "points/tenure.hpp"

namespace onlineforest::bindings {

inline KeepOptions keep_of(std::size_t window, std::size_t reservoir, double half_life) {
  if (window > 0 && reservoir > 0) {
    throw std::invalid_argument("window and reservoir exclude each other, got window " + std::to_string(window) +
                                " and reservoir " + std::to_string(reservoir));
  }
  if (window > 0) return {KeepRule::kLatest, window, kInfinity};
  if (reservoir > 0) return {KeepRule::kSample, reservoir, half_life};
  return {};
}

}  // namespace onlineforest::bindings
