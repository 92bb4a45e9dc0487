#include "base/huge_pages.hpp"

#include <cstdint>

#include "testing.hpp"

using namespace onlineforest;

namespace {

TEST_CASE("an array keeps its contents while it becomes large and small again") {
  LargeVector<std::uint32_t> values;
  const std::uint32_t n = 3'000'000;  // 12 MB
  for (std::uint32_t i = 0; i < n; ++i) values.push_back(i);
  bool are_kept = true;
  for (std::uint32_t i = 0; i < n; ++i) are_kept = are_kept && values[i] == i;
  CHECK(are_kept);
  values.resize(1000);
  values.shrink_to_fit();
  CHECK(values.capacity() < 2000);
  CHECK(values.back() == 999);
}

TEST_CASE("large arrays begin at a huge page, small ones need not") {
  const LargeVector<double> large(1 << 20);
  CHECK(reinterpret_cast<std::uintptr_t>(large.data()) % (1 << 21) == 0);
  CHECK(LargeVector<double>(10, 1.0) == LargeVector<double>(10, 1.0));
}

}  // namespace
