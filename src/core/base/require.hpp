// A condition on what comes from outside.
#pragma once

#include <stdexcept>

namespace onlineforest {

inline void require(bool ok, const char* message) {
  if (!ok) throw std::invalid_argument(message);
}

}  // namespace onlineforest
