// All that a forest does: for files that instantiate the template.
#pragma once

#include "orderfree/forest/forest.hpp"      // IWYU pragma: export
#include "orderfree/forest/forgetting.hpp"  // IWYU pragma: export
#include "orderfree/forest/state.hpp"       // IWYU pragma: export
#include "orderfree/forest/store.hpp"       // IWYU pragma: export
#include "orderfree/forest/upkeep.hpp"      // IWYU pragma: export
