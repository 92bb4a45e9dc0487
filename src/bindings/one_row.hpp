// Converts one row to float32, from any object with a buffer of numbers. Rounding and checking a single row here is
// faster than in NumPy.
#pragma once

#include <nanobind/nanobind.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace onlineforest::bindings {

namespace nb = nanobind;

// A view of the buffer of a Python object, of any layout.
class Buffer {
 public:
  explicit Buffer(nb::handle object) {
    if (PyBytes_Check(object.ptr()) || PyByteArray_Check(object.ptr())) return;  // they are text, not numbers
    is_there_ = PyObject_GetBuffer(object.ptr(), &view_, PyBUF_STRIDED_RO | PyBUF_FORMAT) == 0;
    if (!is_there_) PyErr_Clear();
  }
  ~Buffer() {
    if (is_there_) PyBuffer_Release(&view_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // The type code of the numbers if the buffer is one-dimensional and in the native byte order, otherwise 0.
  char code() const {
    if (!is_there_ || view_.ndim != 1) return 0;
    return view_.format != nullptr && std::strlen(view_.format) == 1 ? view_.format[0] : char{0};
  }

  std::size_t size() const { return static_cast<std::size_t>(view_.shape[0]); }

  template <class T>
  T at(std::size_t i) const {  // may be unaligned
    T value;
    std::memcpy(&value, static_cast<const char*>(view_.buf) + static_cast<Py_ssize_t>(i) * view_.strides[0], sizeof(T));
    return value;
  }

 private:
  Py_buffer view_;
  bool is_there_ = false;
};

template <class T>
std::vector<float> rounded_row(const Buffer& x, std::size_t n_features) {
  if (x.size() != n_features) {
    throw std::invalid_argument("x has " + std::to_string(x.size()) + " features, but this forest has " +
                                std::to_string(n_features));
  }
  std::vector<float> row(n_features);
  for (std::size_t d = 0; d < n_features; ++d) {
    row[d] = static_cast<float>(x.at<T>(d));
    if (std::isinf(row[d])) {
      std::ostringstream text;
      text << "x contains infinity or a value too large for float32: " << +x.at<T>(d) << " at feature " << d;
      throw std::invalid_argument(text.str());
    }
  }
  return row;
}

// Converts one row. Raises a TypeError for an object without a buffer of numbers; the Python caller then converts it.
inline std::vector<float> one_row(nb::handle object, std::size_t n_features) {
  const Buffer x(object);
  switch (x.code()) {
    case 'f':
      return rounded_row<float>(x, n_features);
    case 'd':
      return rounded_row<double>(x, n_features);
    case 'b':
      return rounded_row<signed char>(x, n_features);
    case 'B':
      return rounded_row<unsigned char>(x, n_features);
    case 'i':
      return rounded_row<int>(x, n_features);
    case 'l':
      return rounded_row<long>(x, n_features);
    case 'q':
      return rounded_row<long long>(x, n_features);
    default:
      throw nb::type_error("x must be an array of numbers, of one dimension");
  }
}

}  // namespace onlineforest::bindings
