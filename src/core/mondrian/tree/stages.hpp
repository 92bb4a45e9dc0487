// All stages of a tree: include this to instantiate Tree. Must not hold code.
#pragma once

#include "mondrian/tree/boxes.hpp"    // IWYU pragma: export
#include "mondrian/tree/extend.hpp"   // IWYU pragma: export
#include "mondrian/tree/forget.hpp"   // IWYU pragma: export
#include "mondrian/tree/grow.hpp"     // IWYU pragma: export
#include "mondrian/tree/recount.hpp"  // IWYU pragma: export
#include "mondrian/tree/tree.hpp"     // IWYU pragma: export
