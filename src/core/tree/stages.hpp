// All stages of a tree: include this to instantiate Tree. Must not hold code.
#pragma once

#include "tree/boxes.hpp"    // IWYU pragma: export
#include "tree/extend.hpp"   // IWYU pragma: export
#include "tree/forget.hpp"   // IWYU pragma: export
#include "tree/grow.hpp"     // IWYU pragma: export
#include "tree/recount.hpp"  // IWYU pragma: export
#include "tree/tree.hpp"     // IWYU pragma: export
