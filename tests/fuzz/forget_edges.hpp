// Keeps an input out of libFuzzer's corpus. Knows nothing of states.
#pragma once

namespace onlineforest::fuzz {

// Call it for rejected inputs. libFuzzer would keep one input for each reason of rejection and soon mutate little else,
// but a rejected input hardly ever becomes a valid one by another mutation.
void forget_edges();

}  // namespace onlineforest::fuzz
