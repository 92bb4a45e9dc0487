// All stages of Forest, for the files that instantiate it.
#pragma once

#include "forest/filling.hpp"     // IWYU pragma: export
#include "forest/forest.hpp"      // IWYU pragma: export
#include "forest/forgetting.hpp"  // IWYU pragma: export
#include "forest/learning.hpp"    // IWYU pragma: export
#include "forest/prediction.hpp"  // IWYU pragma: export
#include "tree/stages.hpp"        // IWYU pragma: export
