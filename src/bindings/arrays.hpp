// Converts NumPy arrays without copies: arguments become spans, results become arrays that own a vector.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
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
using OutArray = nb::ndarray<nb::numpy, T, nb::ndim<Dims>>;

template <class T, class... Args>
std::span<const T> span_of(const nb::ndarray<const T, Args...>& array) {
  return {array.data(), array.size()};
}

template <class T, class... Args>
std::vector<T> vector_of(const nb::ndarray<const T, Args...>& array) {
  return {array.data(), array.data() + array.size()};
}

// An array whose elements cannot be changed.
template <class T, std::size_t Dims>
using ConstantArray = nb::ndarray<nb::numpy, const T, nb::ndim<Dims>>;

template <class Array, class T, std::size_t Dims>
Array array_owning(std::vector<T> values, const std::size_t (&shape)[Dims]) {
  auto owner = std::make_unique<std::vector<T>>(std::move(values));
  T* data = owner->data();
  nb::capsule capsule(owner.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  owner.release();
  return Array(data, Dims, shape, capsule);
}

template <class T, std::size_t Dims>
OutArray<T, Dims> to_array(std::vector<T> values, const std::size_t (&shape)[Dims]) {
  return array_owning<OutArray<T, Dims>>(std::move(values), shape);
}

template <class T>
OutArray<T, 1> to_array(std::vector<T> values) {
  const std::size_t n = values.size();
  return to_array(std::move(values), {n});
}

template <class T>
ConstantArray<T, 1> to_constant_array(std::vector<T> values) {
  const std::size_t n = values.size();
  return array_owning<ConstantArray<T, 1>>(std::move(values), {n});
}

// The function numpy.empty. The reference is never released.
inline PyObject* numpy_empty = nullptr;

// Finds numpy.empty. The module calls it once, at import.
inline void find_numpy() { numpy_empty = nb::object(nb::module_::import_("numpy").attr("empty")).release().ptr(); }

// Copies a few numbers to an array that NumPy allocates. For fewer than about a thousand numbers, this is faster
// than `to_array`.
inline nb::typed<nb::object, OutArray<double, 1>> small_array(std::span<const double> values) {
  nb::object array = nb::handle(numpy_empty)(values.size());
  Py_buffer view;
  if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_WRITABLE) != 0) throw nb::python_error();
  std::ranges::copy(values, static_cast<double*>(view.buf));
  PyBuffer_Release(&view);
  return array;
}

}  // namespace onlineforest::bindings
