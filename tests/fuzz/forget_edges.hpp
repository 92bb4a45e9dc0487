// Keeps an input out of libFuzzer's corpus, whatever is new about it.
#pragma once

namespace onlineforest::fuzz {

// What is refused is nothing to start from: another change hardly ever makes it a forest. But libFuzzer would keep one
// for each way to be refused, and soon try little else.
void forget_edges();

}  // namespace onlineforest::fuzz
