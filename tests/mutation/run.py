"""The mutants: known ways to break the core, each of which the tests must notice.

    python tests/mutation/run.py [--rooms ROOM ... | --only TEXT | --all | --check] [--least N]
        [--seconds S]

Each mutant is a copy of the sources with one piece of text replaced. It is built like the real
core and given to the tests named with it. One of them must fail without the help of the invariant
checker, which would see some of the mutants at once. The machinery is in `workshop.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from mutation.workshop import Mutant, main

ONLINE_EQUALS_BATCH = "tests/statistical/test_online_equals_batch.py"
FORGETTING = "tests/statistical/test_forgetting.py"
REFERENCE = "tests/parity/test_reference.py"
GAUSSIAN = "tests/parity/test_gaussian.py"
LEARNED_WEIGHTS = "tests/models/test_learned_weights.py"
MISSING = "tests/models/test_missing.py"
SHARDS = "tests/parity/test_shards.py"
ORDER_FREE = "tests/parity/test_order_free.py"

MUTANTS = [
    Mutant(
        "the rate of an extension counts the old box too",
        "src/core/tree/extend.hpp",
        "const double rate = extension_rate(weights(), block.box, outer, 0, n);",
        "const double rate = extension_rate(weights(), block.box, outer, 0, n) > 0.0"
        " ? linear_dimension(weights(), outer, n) : 0.0;",
        ONLINE_EQUALS_BATCH,
    ),
    Mutant(
        "the location is drawn in the wrong gap",
        "src/core/process/cut.hpp",
        "is_upper ? rng.location(box.upper[d], row[d]) : rng.location(row[d], box.lower[d])",
        "is_upper ? rng.location(box.lower[d], row[d]) : rng.location(row[d], box.upper[d])",
        ONLINE_EQUALS_BATCH,
        is_variant=True,
    ),
    Mutant(
        "the random state is the same for every sample",
        "src/core/tree/extend.hpp",
        "    learn();\n  } catch",
        "    learn();\n    rng_ = before.copy();\n  } catch",
        ONLINE_EQUALS_BATCH,
        is_variant=True,
    ),
    Mutant(
        "a box is not grown",
        "src/core/tree/boxes.hpp",
        "  if (n_points <= kFewPoints) return;\n  nodes_.add_box(j);",
        "  if (n_points <= kFewPoints || nodes_.has_box(j)) return;\n  nodes_.add_box(j);",
        ONLINE_EQUALS_BATCH,
        only="cloud",
        is_variant=True,
    ),
    Mutant(
        "a box is not grown by one point",
        "src/core/tree/boxes.hpp",
        "    include(nodes_.lower(j), nodes_.upper(j), {row, row}, n_features());\n  }\n}",
        "  }\n}",
        ONLINE_EQUALS_BATCH,
        only="cloud",
        is_variant=True,
    ),
    Mutant(
        "the near child is born at its grandparent's time",
        "src/core/tree/extend.hpp",
        "work.tasks.push_back({near, near_begin, near_end, time, rng_.exponential()})",
        "work.tasks.push_back({near, near_begin, near_end, task.birth_time, rng_.exponential()})",
        ONLINE_EQUALS_BATCH,
        is_variant=True,
    ),
    Mutant(
        "both children go on with one clock",
        "src/core/tree/extend.hpp",
        "both ? rng_.exponential() : clock",
        "clock",
        ONLINE_EQUALS_BATCH,
        is_variant=True,
    ),
    Mutant(
        "the clock does not run down",
        "src/core/tree/extend.hpp",
        "return rate > 0.0 ? std::max(clock - rate * duration, 0.0) : clock;",
        "return rate * duration >= 0.0 ? clock : clock;",
        ONLINE_EQUALS_BATCH,
        is_variant=True,
    ),
    Mutant(
        "a proposal that misses the box is taken",
        "src/core/process/cut.hpp",
        "if (range.lower <= location && location < range.upper) {",
        "if (range.lower <= location && range.lower < range.upper) {",
        ONLINE_EQUALS_BATCH,
        only="wide",
        is_variant=True,
    ),
    Mutant(
        "a right child goes on with the bounds of the left",
        "src/core/tree/grow.hpp",
        "        work.bounds.rewind(block.mark);\n",
        "",
        ONLINE_EQUALS_BATCH,
        only="wide",
        is_variant=True,
    ),
    Mutant(
        "the posterior counts labels both children hold once",
        "src/core/labels/label_walk.hpp",
        "level.n_labels + sets.size_common(node.left, node.right())",
        "level.n_labels",
        REFERENCE,
    ),
    Mutant(
        "the walk forgets to weigh the features",
        "src/core/process/rates.hpp",
        "rate += weights[d] * distance_to(box.lower[d], box.upper[d], row[d]);",
        "rate += (weights[d] > 0) * distance_to(box.lower[d], box.upper[d], row[d]);",
        REFERENCE,
        is_variant=True,
    ),
    Mutant(
        "pausing looks at the first new point only",
        "src/core/tree/pausing.hpp",
        "holds_only(leaf, node, points, value) && all_equal(points, more, value)",
        "holds_only(leaf, node, points, value)",
        ONLINE_EQUALS_BATCH,
        is_variant=True,
    ),
    Mutant(
        "relevance keeps what chance takes off",
        "src/core/forest/relevance.hpp",
        "relevance[d] += (gain - by_chance) * share;",
        "relevance[d] += gain * share;",
        LEARNED_WEIGHTS,
        is_variant=True,
    ),
    Mutant(
        "a message goes up an edge without its variance",
        "src/core/numbers/gaussian_target.hpp",
        "return {below.mean, below.variance + edge_variance(fade_above, fade_below)};",
        "return {below.mean, below.variance + 0.0 * edge_variance(fade_above, fade_below)};",
        GAUSSIAN,
        is_variant=True,
    ),
    Mutant(
        "no bridge where a row branches off",
        "src/core/numbers/gaussian_walk.hpp",
        "mean = level.above.mean + apart * w;",
        "mean = level.below.mean + 0.0 * apart;",
        GAUSSIAN,
        is_variant=True,
    ),
    Mutant(
        "a set of points leaves the beliefs above it as they were",
        "src/core/tree/extend.hpp",
        "    work.unset.push_back({j, false});\n  } else {",
        "  } else {",
        GAUSSIAN,
        is_variant=True,
    ),
    Mutant(
        "a point that is left out still speaks",
        "src/core/numbers/gaussian_walk.hpp",
        "      if (!held_it) {\n        beliefs_[k]",
        "      if (!held_it || other != kNoNode) {\n        beliefs_[k]",
        GAUSSIAN,
        is_variant=True,
    ),
    Mutant(
        "a point that is left out still stretches the boxes",
        "src/core/numbers/gaussian_walk.hpp",
        "tree.box(places_[k + 1].other, points, buffer_)",
        "tree.box(place.node, points, buffer_)",
        GAUSSIAN,
        is_variant=True,
    ),
    Mutant(
        "a box does not shrink when a point is forgotten",
        "src/core/points/box.hpp",
        "    lower[d] = low;\n    upper[d] = high;\n",
        "",
        FORGETTING,
        only="back",
    ),
    Mutant(
        "the boxes above one that shrinks do not",
        "src/core/tree/boxes.hpp",
        "return std::exchange(old, now) == now;",
        "return old == now;",
        FORGETTING,
        only="crowd and wide",
        is_variant=True,
    ),
    Mutant(
        "the box of a leaf does not shrink when a point is forgotten",
        "src/core/tree/boxes.hpp",
        "(is_upper ? upper : lower)[d] = points.row(nodes_[leaf].first_point)[d];",
        "static_cast<void>(d), static_cast<void>(is_upper);",
        FORGETTING,
        only="predictions and crowd",
        is_variant=True,
    ),
    Mutant(
        "a block that may pause again stays cut",
        "src/core/tree/forget.hpp",
        "j != kRoot && target_.may_join(nodes_, links_.parent(j), points)",
        "false && target_.may_join(nodes_, links_.parent(j), points)",
        FORGETTING,
        only="class",
        is_variant=True,
    ),
    Mutant(
        "of the cuts of a block that may pause again only the last is undone",
        "src/core/tree/forget.hpp",
        "    j = join(links_.parent(j), points, work, stop);\n",
        "    j = join(links_.parent(j), points, work, stop);\n    break;\n",
        FORGETTING,
        only="class",
        is_variant=True,
    ),
    Mutant(
        "who takes its parent's place takes its time",
        "src/core/tree/forget.hpp",
        "  move_node(sibling, j);\n",
        "  const double time = nodes_.split_time(j);\n  move_node(sibling, j);\n"
        "  if (!nodes_[j].is_leaf()) set_split_time(j, time);\n",
        FORGETTING,
        only="outliers",
        is_variant=True,
    ),
    Mutant(
        "a label that is forgotten stays known above its leaf",
        "src/core/labels/label_target.hpp",
        "    sets_.erase(j, label);\n",
        "",
        FORGETTING,
        only="predictions and labels",
        is_variant=True,
    ),
    Mutant(
        "the beliefs above a point that is forgotten stay as they were",
        "src/core/numbers/gaussian_target.hpp",
        "    combine(j, left, right);\n    return true;",
        "    return true;",
        FORGETTING,
        only="predictions and numbers",
        is_variant=True,
    ),
    Mutant(
        "the point that lies deepest goes",
        "src/core/forest/learning.hpp",
        "  const Leaving leaving(std::move(admission.leaving), points_.size());\n",
        "    std::size_t most = 0;\n"
        "    for (std::size_t i = 0; admission.leaving.size() == 1 && i < points_.size(); ++i) {\n"
        "      const Slot slot = static_cast<Slot>(i);\n"
        "      Path path;\n"
        "      find_path(trees_.front().nodes(), kRoot, points_.row(slot), path);\n"
        "      if (path.size() > most) admission.leaving.front() = slot;\n"
        "      most = std::max(most, path.size());\n"
        "    }\n"
        "  const Leaving leaving(std::move(admission.leaving), points_.size());\n",
        FORGETTING,
        only="blindly",
        is_variant=True,
    ),
    Mutant(
        "what is missing cuts a row off",
        "src/core/tree/walk.hpp",
        "if (std::isnan(rows.given[i * n_features + d])) known_weights_[d] = 0.0;",
        "if (std::isnan(rows.given[i * n_features + d])) known_weights_[d] *= 1.0;",
        MISSING,
        is_variant=True,
    ),
    Mutant(
        "one by one, those that come later lend",
        "src/core/forest/filling.hpp",
        "if (one_by_one_) return Lending{i, n_before + i + 1};",
        "if (one_by_one_) return Lending{i, n_before + n};",
        MISSING,
        is_variant=True,
    ),
    Mutant(
        "what was filled in once stays",
        "src/core/forest/learning.hpp",
        "points_.missing().any() && measure_ ?",
        "points_.missing().any() && !measure_ ?",
        MISSING,
        is_variant=True,
    ),
    Mutant(
        "trees of a part are numbered from 0",
        "src/core/forest/learning.hpp",
        "Rng(options_.seed, i));",
        "Rng(options_.seed, i - held.begin));",
        SHARDS,
        is_variant=True,
    ),
    Mutant(
        "a part has a trial of its own",
        "src/core/forest/trial.hpp",
        "options_.n_trees = std::min(options_.n_trees, kTrialTrees);",
        "options_.n_trees = std::min(options_.trees_held().size(), kTrialTrees);",
        SHARDS,
        is_variant=True,
    ),
    Mutant(
        "the groups of trees are not told apart",
        "src/core/forest/sums.hpp",
        "terms[end].group == terms[begin].group",
        "terms[end].group >= terms[begin].group",
        SHARDS,
        is_variant=True,
    ),
    Mutant(
        "samples of equal rank are ordered by slot",
        "src/core/guided/sample_store.hpp",
        "return at_a != at_b ? at_a < at_b : samples_.content_less(a, b);",
        "return at_a != at_b ? at_a < at_b : a < b;",
        ORDER_FREE,
        only="ties",
    ),
    Mutant(
        "a pair of samples is not drawn again when one of them leaves",
        "src/core/guided/ballot.cpp",
        "return place_ - from <= order_.place(other) - from;",
        "return place_ - from < order_.place(other) - from;",
        ORDER_FREE,
        only="extreme and forgotten",
        is_variant=True,
    ),
    Mutant(
        "a range is not looked at again when its end leaves",
        "src/core/guided/ballot.cpp",
        " || left <= proposal.low || left >= proposal.high) return true;",
        ") return true;",
        ORDER_FREE,
        only="real and by",
        is_variant=True,
    ),
    Mutant(
        "a sample that leaves the ballot is still counted",
        "src/core/guided/ballot.cpp",
        "proposal.squares_right -= share(~proposal.left & like_leaving_, old_weight_);",
        "",
        ORDER_FREE,
        only="real and by",
    ),
    Mutant(
        "a deciding sample that is forgotten is not replaced",
        "src/core/guided/apply.cpp",
        "      ++n_lost;\n",
        "      n_lost += 0;\n",
        ORDER_FREE,
        only="real and forgotten",
        is_variant=True,
    ),
    Mutant(
        "the deciding sample of greatest rank is not found again",
        "src/core/guided/apply.cpp",
        "    coming.erase(coming.begin());\n    find_last(junction, samples);\n",
        "    coming.erase(coming.begin());\n",
        ORDER_FREE,
        only="real and by",
        is_variant=True,
    ),
    Mutant(
        "a count is not taken back when a sample is forgotten",
        "src/core/guided/apply.cpp",
        "    junction.counts.add(samples.label(change.slot), change.by);\n",
        "    if (change.by > 0) junction.counts.add(samples.label(change.slot), change.by);\n",
        ORDER_FREE,
        only="real and forgotten",
        is_variant=True,
    ),
    Mutant(
        "a cut is not decided again when a weight changes",
        "src/core/guided/apply.cpp",
        "      is_reweighted = true;\n",
        "      is_reweighted = false;\n",
        ORDER_FREE,
        only="follows_the_weights",
        is_variant=True,
    ),
    Mutant(
        "whether a tree learns a sample depends on its label",
        "src/core/guided/tree.cpp",
        "scramble(samples.x_hash(slot) ^ seeds_.membership)",
        "scramble(samples.key(slot) ^ seeds_.membership)",
        ORDER_FREE,
        only="left_out",
        is_variant=True,
    ),
    Mutant(
        "both children of a large block have one seed",
        "src/core/guided/grow.cpp",
        "right.seed = derive(junction.seed, of_node::kRight);",
        "right.seed = derive(junction.seed, of_node::kLeft);",
        ORDER_FREE,
        only="real and once",
        is_variant=True,
    ),
    Mutant(
        "the children of a small block swap their seeds",
        "src/core/guided/grow.cpp",
        ".next ? of_node::kLeft : of_node::kRight);",
        ".next ? of_node::kRight : of_node::kLeft);",
        ORDER_FREE,
        only="real and once",
        is_variant=True,
    ),
    Mutant(
        "the cuts of a small block stay when it learns a sample",
        "src/core/guided/apply.cpp",
        "    list.uncut();\n    return;\n",
        "    return;\n",
        ORDER_FREE,
        only="real and by",
        is_variant=True,
    ),
    Mutant(
        "of the samples of another row any decides",
        "src/core/guided/grow.cpp",
        "(best == kNoSlot || by_rank(slot, best))",
        "best == kNoSlot",
        ORDER_FREE,
        only="others_decide",
        is_variant=True,
    ),
    Mutant(
        "a list that learned a sample counts as ordered by rank",
        "src/core/guided/apply.cpp",
        "    list.slots.push_back(change.slot);\n    list.is_ranked = false;\n",
        "    list.slots.push_back(change.slot);\n",
        ORDER_FREE,
        only="batches",
        is_variant=True,
    ),
    Mutant(
        "a label stays known when its last sample is forgotten",
        "src/core/guided/forest.cpp",
        "if (n_gone > 0 || totals_.n_labels() != n_labels) find_known();",
        "if (totals_.n_labels() > n_labels) find_known();",
        ORDER_FREE,
        only="real and forgotten",
        is_variant=True,
    ),
    Mutant(
        "16 samples make few proposals",
        "src/core/guided/law.hpp",
        "return n >= 16 ? kMostProposals : 4;",
        "return n > 16 ? kMostProposals : 4;",
        ORDER_FREE,
        only="law_changes",
        is_variant=True,
    ),
]

# What the unbroken core must pass before any mutant is judged: a test file and a `-k` expression.
SOUND = (REFERENCE, "recount")


if __name__ == "__main__":
    sys.exit(main(MUTANTS, SOUND, __doc__.splitlines()[0]))
