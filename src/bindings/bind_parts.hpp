// What parts of a forest are asked, and what is made of their answers: more methods of the forests, and functions.
#pragma once

#include <nanobind/nanobind.h>

#include "labels/label_forest.hpp"
#include "numbers/gaussian_forest.hpp"

namespace onlineforest::bindings {

void bind_parts(nanobind::module_& module, nanobind::class_<LabelForest>& of_labels,
                nanobind::class_<GaussianForest>& of_numbers);

}  // namespace onlineforest::bindings
