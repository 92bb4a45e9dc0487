// NumPy arrays in and out without copies: spans over arrays that come in, arrays that own a vector going out.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace onlineforest::bindings {

namespace nb = nanobind;

template <class T, std::size_t Dims>
using InArray = nb::ndarray<const T, nb::ndim<Dims>, nb::c_contig, nb::device::cpu>;

template <class T, std::size_t Dims>
using InOutArray = nb::ndarray<T, nb::ndim<Dims>, nb::c_contig, nb::device::cpu>;

template <class T, std::size_t Dims>
using OutArray = nb::ndarray<nb::numpy, T, nb::ndim<Dims>>;

template <class T, class... Args>
std::span<const T> span_of(const nb::ndarray<const T, Args...>& array) {
  return {array.data(), array.size()};
}

template <class T, class... Args>
std::vector<T> vector_of(const nb::ndarray<const T, Args...>& array) {
  return {array.data(), array.data() + array.size()};
}

template <class T, std::size_t Dims>
OutArray<T, Dims> to_array(std::vector<T> values, const std::size_t (&shape)[Dims]) {
  auto owner = std::make_unique<std::vector<T>>(std::move(values));
  T* data = owner->data();
  nb::capsule capsule(owner.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  owner.release();
  return OutArray<T, Dims>(data, Dims, shape, capsule);
}

template <class T>
OutArray<T, 1> to_array(std::vector<T> values) {
  const std::size_t n = values.size();
  return to_array(std::move(values), {n});
}

}  // namespace onlineforest::bindings
