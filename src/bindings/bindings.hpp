// What each file of the bindings adds to the module.
#pragma once

#include <nanobind/nanobind.h>

namespace onlineforest::bindings {

void bind_guided(nanobind::module_& module);
void bind_labels(nanobind::module_& module);

}  // namespace onlineforest::bindings
