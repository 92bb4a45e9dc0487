// The extension module onlineforest._core. Arrays in and out, the GIL, nothing else.
#include <nanobind/nanobind.h>

namespace onlineforest::bindings {
void bind_forests(nanobind::module_& module);
}

NB_MODULE(_core, module) {
#ifdef NDEBUG
  // A daemon thread that is alive at exit holds references; that is no leak of ours.
  nanobind::set_leak_warnings(false);
#endif
  module.doc() = "The compiled core of onlineforest. Private: use the estimators.";
  onlineforest::bindings::bind_forests(module);
}
