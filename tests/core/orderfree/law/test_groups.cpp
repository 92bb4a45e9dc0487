#include <bit>
#include <map>
#include <random>
#include <vector>

#include "orderfree/law/groups.hpp"
#include "testing.hpp"

using namespace onlineforest;
using namespace onlineforest::orderfree;

namespace {

TEST_CASE("groups hold samples of equal words") {
  std::mt19937 draw(13);
  Groups groups;
  for (int trial = 0; trial < 300; ++trial) {
    groups.clear();
    std::vector<Word> words(1 + draw() % kMostDeciding);
    // Words that share a place in the table, small ones, and numbers as bits.
    const unsigned n_words = 1 + draw() % 64;
    for (Word& word : words) {
      word = draw() % n_words;
      if (trial % 3 == 1) word <<= 60;
      if (trial % 3 == 2) word = std::bit_cast<Word>(static_cast<double>(word) * 0.5);
    }
    for (std::size_t i = 0; i < words.size(); ++i) groups.add(i, words[i]);
    std::map<Word, Block> expected, found;
    for (std::size_t i = 0; i < words.size(); ++i) expected[words[i]] |= Block{1} << i;
    for (std::size_t c = 0; c < groups.size(); ++c) found[groups.word(c)] = groups.block(c);
    CHECK(found == expected);
    CHECK(groups.size() == expected.size());
    for (std::size_t i = 0; i < words.size(); ++i) CHECK(groups.like(i) == expected[words[i]]);
    const Block all = words.size() == 64 ? ~Block{0} : (Block{1} << words.size()) - 1;
    const Block block = all & (Word{draw()} << 32 | draw()) & (trial % 2 == 0 ? Word{draw()} : ~Word{0});
    if (block == 0) continue;
    std::map<Word, int> within;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (block >> i & 1) ++within[words[i]];
    }
    CHECK(groups.are_one(block) == (within.size() == 1));
  }
}

}  // namespace
