// Errors of the C API: a status and a message of one line. Must not know what fails.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "onlineforest.h"

namespace onlineforest::capi {

class Failure : public std::runtime_error {
 public:
  Failure(of_status status, const std::string& message) : std::runtime_error(message), status_(status) {}

  [[nodiscard]] of_status status() const { return status_; }

 private:
  of_status status_;
};

// About a file. The caller puts the path before the message.
[[noreturn]] inline void refuse(const std::string& why) { throw Failure(OF_BAD_FILE, why); }

inline void check(bool ok, const char* why) {
  if (!ok) refuse(why);
}

// Text of an untrusted file in quotes, for a message: short, and without what a terminal would obey.
[[nodiscard]] inline std::string in_quotes(std::string_view text) {
  constexpr std::size_t kMost = 64;
  std::string result = "'";
  for (const char c : text.substr(0, kMost)) result += c >= ' ' && c <= '~' ? c : '?';
  return result + (text.size() > kMost ? "...'" : "'");
}

}  // namespace onlineforest::capi
