// Conditions on a state, and the errors that name the array, the value and the bound. Knows nothing of forests.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace onlineforest::mondrian {

// Joins strings and numbers to one text.
template <class... Parts>
std::string text_of(const Parts&... parts) {
  std::ostringstream text;
  text.precision(9);  // enough to tell floats apart
  (text << ... << parts);
  return text.str();
}

template <class... Parts>
[[noreturn]] void fail_state(const Parts&... parts) {
  throw std::invalid_argument("not the state of a forest: " + text_of(parts...));
}

// Throws std::invalid_argument with the joined `parts` unless `ok`. Builds the text only then, so a condition that
// holds costs no memory; but the parts are evaluated in any case and must be valid.
template <class... Parts>
void require_state(bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]]
    fail_state(parts...);
}

}  // namespace onlineforest::mondrian
