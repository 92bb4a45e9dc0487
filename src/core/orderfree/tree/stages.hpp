// All stages of a tree: include this to instantiate Tree. Must not hold code.
#pragma once

#include "orderfree/tree/follow.hpp"   // IWYU pragma: export
#include "orderfree/tree/grow.hpp"     // IWYU pragma: export
#include "orderfree/tree/predict.hpp"  // IWYU pragma: export
#include "orderfree/tree/tree.hpp"     // IWYU pragma: export
