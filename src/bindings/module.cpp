// Defines the extension module onlineforest._core. Bindings convert arguments and release the GIL, and contain no
// algorithm.
#include <nanobind/nanobind.h>

#include "arrays.hpp"
#include "base/allowance.hpp"
#include "bindings.hpp"
#include "mondrian/process/measure.hpp"
#include "orderfree/forest/calibrators.hpp"
#include "orderfree/labels/calibration.hpp"
#include "orderfree/labels/labels.hpp"
#include "orderfree/law/law.hpp"
#include "orderfree/numbers/ledger.hpp"
#include "orderfree/numbers/numbers.hpp"
#include "samples/weight.hpp"

NB_MODULE(_core, module) {
  namespace nb = nanobind;
  using namespace onlineforest;
#ifdef NDEBUG
  // A daemon thread that is alive at exit holds references, which nanobind would report as leaks.
  nb::set_leak_warnings(false);
#endif
  bindings::find_numpy();
  module.doc() = "The compiled core of onlineforest. Private: use the estimators.";
  module.attr("LAW") = orderfree::kLaw;
  module.attr("LARGEST_WEIGHT") = mondrian::kLargestWeight;
  module.attr("LARGEST_VALUE") = orderfree::NumberLedger::kLargest;
  module.attr("WEIGHT_OF_ONE") = kOne;
  module.attr("LEAST_CALIBRATORS") = orderfree::kFewestCalibrators;
  module.attr("MOST_CALIBRATORS") = orderfree::kMostCalibrators;
  module.attr("SAMPLES_PER_CALIBRATOR_OF_LABELS") = orderfree::Labels::kOneCalibratesOf;
  module.attr("SAMPLES_PER_CALIBRATOR_OF_NUMBERS") = orderfree::Numbers::kOneCalibratesOf;
  module.attr("LEAST_TREES_TO_CALIBRATE_LABELS") = orderfree::Labels::kFewestTreesToCalibrate;
  module.attr("LEAST_TREES_TO_CALIBRATE_NUMBERS") = orderfree::Numbers::kFewestTreesToCalibrate;
  module.attr("LEAST_POWER") = orderfree::kLeastPower;
  module.attr("LARGEST_POWER") = orderfree::kMostPower;
  module.attr("LARGEST_LEVEL_POWER") = orderfree::kMostLevelPower;
  module.attr("LARGEST_SPREAD") = orderfree::kMostSpread;
  module.attr("LARGEST_TOTAL_WEIGHT") = kMostWeight / kOne;
  nb::exception<TooLarge>(module, "TooLargeError", PyExc_ValueError);
  bindings::bind_orderfree_labels(module);
  bindings::bind_orderfree_numbers(module);
  bindings::bind_mondrian(module);
}
