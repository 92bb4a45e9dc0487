// The extension module onlineforest._core: arrays in and out, the GIL, nothing else.
#include <nanobind/nanobind.h>

#include "base/allowance.hpp"
#include "bindings.hpp"
#include "mondrian/process/measure.hpp"
#include "orderfree/law/law.hpp"
#include "orderfree/numbers/ledger.hpp"
#include "samples/weight.hpp"

NB_MODULE(_core, module) {
  namespace nb = nanobind;
  using namespace onlineforest;
#ifdef NDEBUG
  // A daemon thread that is alive at exit holds references, which nanobind would report as leaks.
  nb::set_leak_warnings(false);
#endif
  module.doc() = "The compiled core of onlineforest. Private: use the estimators.";
  module.attr("LAW") = orderfree::kLaw;
  module.attr("LARGEST_WEIGHT") = mondrian::kLargestWeight;
  module.attr("LARGEST_VALUE") = orderfree::NumberLedger::kLargest;
  module.attr("UNITS_PER_SAMPLE") = kOne;
  module.attr("LARGEST_TOTAL_WEIGHT") = kMostWeight / kOne;
  nb::exception<TooLarge>(module, "TooLargeError", PyExc_ValueError);
  bindings::bind_orderfree(module);
  bindings::bind_mondrian(module);
}
