// All stages of a tree: include this to instantiate Tree. Must not hold code.
#pragma once

#include "guided/apply.hpp"    // IWYU pragma: export
#include "guided/grow.hpp"     // IWYU pragma: export
#include "guided/predict.hpp"  // IWYU pragma: export
#include "guided/tree.hpp"     // IWYU pragma: export
