#include <algorithm>
#include <vector>

#include "base/recycler.hpp"
#include "testing.hpp"

using namespace onlineforest;

namespace {

TEST_CASE("places that are put back are used again, in their initial state") {
  Recycler<std::vector<int>> recycler;
  const auto a = recycler.take(), b = recycler.take();
  CHECK(a != b);
  recycler[a] = {1, 2};
  recycler[b] = {3};
  recycler.put_back(a);
  CHECK(recycler[b] == std::vector<int>{3});
  CHECK(recycler.take() == a);
  CHECK(recycler[a].empty());
  CHECK(recycler.items().size() == 2);
  recycler.put_back(b);
  recycler.put_back(a);
  const auto c = recycler.take(), d = recycler.take(), e = recycler.take();
  CHECK(std::min(c, d) == 0);
  CHECK(std::max(c, d) == 1);
  CHECK(e == 2);
  recycler.clear();
  CHECK(recycler.take() == 0);
}

}  // namespace
