// Declares the functions that add the classes of the core to the module.
#pragma once

#include <nanobind/nanobind.h>

namespace onlineforest::bindings {

void bind_orderfree_labels(nanobind::module_& module);
void bind_orderfree_numbers(nanobind::module_& module);
void bind_mondrian(nanobind::module_& module);

}  // namespace onlineforest::bindings
