// The few lines a test needs: CHECK(condition) prints and counts failures, finish() is what main returns.
#pragma once

#include <cstdio>

namespace onlineforest::testing {

inline int n_checks = 0;
inline int n_failures = 0;

inline void check(bool ok, const char* what, const char* file, int line) {
  ++n_checks;
  if (ok) return;
  ++n_failures;
  std::printf("%s:%d: failed: %s\n", file, line, what);
}

inline int finish() {
  std::printf("%d checks, %d failed\n", n_checks, n_failures);
  return n_failures == 0 && n_checks > 0 ? 0 : 1;
}

}  // namespace onlineforest::testing

#define CHECK(condition) ::onlineforest::testing::check((condition), #condition, __FILE__, __LINE__)

#define CHECK_THROWS(expression, Exception) \
  do {                                      \
    bool thrown = false;                    \
    try {                                   \
      (void)(expression);                   \
    } catch (const Exception&) {            \
      thrown = true;                        \
    }                                       \
    CHECK(thrown && #expression);           \
  } while (false)
