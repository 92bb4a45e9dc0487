// doctest, and how it prints vectors and maps when a check fails. Knows nothing of forests.
#pragma once

// clang-format off
#define DOCTEST_CONFIG_SUPER_FAST_ASSERTS  // compiles faster
#include <doctest/doctest.h>
// clang-format on

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace doctest {

template <class A, class B>
struct StringMaker<std::pair<A, B>> {
  static String convert(const std::pair<A, B>& pair) {
    return String("(") + toString(pair.first) + ", " + toString(pair.second) + ")";
  }
};

// The first elements only: a failure prints both sides of a comparison.
template <class Range>
String print_range(const Range& range) {
  constexpr std::ptrdiff_t kMostPrinted = 20;
  String text = "{";
  std::ptrdiff_t n = 0;
  for (const auto& element : range) {
    if (n > 0) text += ", ";
    if (n++ == kMostPrinted) {
      text += "...";
      break;
    }
    text += toString(element);
  }
  return text + "} (" + toString(range.size()) + " elements)";
}

template <class T>
struct StringMaker<std::vector<T>> {
  static String convert(const std::vector<T>& range) { return print_range(range); }
};

template <class Key, class Value>
struct StringMaker<std::map<Key, Value>> {
  static String convert(const std::map<Key, Value>& range) { return print_range(range); }
};

}  // namespace doctest
