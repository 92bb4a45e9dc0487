#include "ids.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "failure.hpp"
#include "json.hpp"

namespace onlineforest::capi {

namespace {

[[nodiscard]] std::string_view id_at(const Ids& ids, std::size_t i) {
  const std::uint64_t begin = i == 0 ? 0 : ids.ends[i - 1];
  return {reinterpret_cast<const char*>(ids.text.data()) + begin, ids.ends[i] - begin};
}

[[nodiscard]] bool is_id(std::string_view id) {
  const char kind = id[0];
  id.remove_prefix(1);
  if (kind == 's') return is_utf8(id, true);
  const bool is_negative = id.starts_with('-');
  if (is_negative) id.remove_prefix(1);
  const bool is_zero = id == "0" && !is_negative;
  return kind == 'i' && !id.empty() && id.find_first_not_of("0123456789abcdef") == std::string_view::npos &&
         (is_zero || id[0] != '0');
}

}  // namespace

void Ids::check() const {
  capi::check(ends.size() == serials.size(), "it does not have exactly one id for each serial of an id");
  std::uint64_t begin = 0;
  for (const std::uint64_t end : ends) {
    capi::check(end > begin && end <= text.size(), "the ends of its ids do not fit their text");
    begin = end;
  }
  capi::check(begin == text.size(), "the ends of its ids do not fit their text");
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    capi::check(is_id(id_at(*this, i)), "one of its ids cannot be read");
    names.push_back(id_at(*this, i));
  }
  std::ranges::sort(names);
  capi::check(std::ranges::adjacent_find(names) == names.end(), "two of its ids are equal");
  std::vector<std::int64_t> sorted = serials;
  std::ranges::sort(sorted);
  capi::check(std::ranges::adjacent_find(sorted) == sorted.end(), "two of its ids belong to one sample");
}

Ids Ids::only(std::span<const std::uint8_t> are_stored) const {
  std::vector<std::size_t> order(ends.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [this](std::size_t i) { return serials[i]; });
  Ids kept;
  for (const std::size_t i : order) {
    if (are_stored[i] == 0) continue;
    const std::string_view id = id_at(*this, i);
    kept.text.insert(kept.text.end(), id.begin(), id.end());
    kept.ends.push_back(kept.text.size());
    kept.serials.push_back(serials[i]);
  }
  return kept;
}

}  // namespace onlineforest::capi
