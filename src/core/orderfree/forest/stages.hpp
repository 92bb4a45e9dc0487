// Includes all members of the forest template, for files that instantiate it.
#pragma once

#include "orderfree/forest/forest.hpp"      // IWYU pragma: export
#include "orderfree/forest/forgetting.hpp"  // IWYU pragma: export
#include "orderfree/forest/saving.hpp"      // IWYU pragma: export
#include "orderfree/forest/store.hpp"       // IWYU pragma: export
#include "orderfree/forest/upkeep.hpp"      // IWYU pragma: export
