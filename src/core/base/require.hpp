// Checks of arguments and of saved states. Must not know what is checked.
#pragma once

#include <concepts>
#include <stdexcept>

namespace onlineforest {

// Throws std::invalid_argument unless `ok`.
inline void require(bool ok, const char* message) {
  if (!ok) throw std::invalid_argument(message);
}

// `message()` returns the text. It is called only on failure, so a check that passes builds no string.
template <std::invocable Message>
void require(bool ok, Message message) {
  if (!ok) throw std::invalid_argument(message());
}

}  // namespace onlineforest
