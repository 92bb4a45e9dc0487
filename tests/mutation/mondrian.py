"""The mutants of the Mondrian forest, and of what both forests share."""

from __future__ import annotations

from mutation.workshop import Mutant

ONLINE_EQUALS_BATCH = "tests/statistical/test_online_equals_batch.py"
FORGETTING = "tests/statistical/test_forgetting.py"
REFERENCE = "tests/parity/test_reference.py"
LEARNED_WEIGHTS = "tests/forests/test_mondrian_learned_weights.py"
COPIES = "tests/forests/test_mondrian_copies.py"
ORDER_FREE = "tests/parity/test_order_free.py"

MUTANTS = [
    Mutant(
        "the rate of an extension counts the old box too",
        "src/core/mondrian/tree/extend.hpp",
        "const double rate = extension_rate(weights(), block.box, outer, 0, n);",
        "const double rate = extension_rate(weights(), block.box, outer, 0, n) > 0.0"
        " ? linear_dimension(weights(), outer, n) : 0.0;",
        ONLINE_EQUALS_BATCH,
    ),
    Mutant(
        "the location is drawn in the wrong gap",
        "src/core/mondrian/process/cut.hpp",
        "is_upper ? rng.location(box.upper[d], row[d]) : rng.location(row[d], box.lower[d])",
        "is_upper ? rng.location(box.lower[d], row[d]) : rng.location(row[d], box.upper[d])",
        ONLINE_EQUALS_BATCH,
        is_variant=True,
    ),
    Mutant(
        "the random state is the same for every sample",
        "src/core/mondrian/tree/extend.hpp",
        "    learn();\n  } catch",
        "    learn();\n    rng_ = before.copy();\n  } catch",
        ONLINE_EQUALS_BATCH,
        is_variant=True,
    ),
    Mutant(
        "a box is not grown",
        "src/core/mondrian/tree/boxes.hpp",
        "  if (n_points <= kFewPoints) return;\n  nodes_.add_box(j);",
        "  if (n_points <= kFewPoints || nodes_.has_box(j)) return;\n  nodes_.add_box(j);",
        ONLINE_EQUALS_BATCH,
        only="cloud",
        is_variant=True,
    ),
    Mutant(
        "a box is not grown by one point",
        "src/core/mondrian/tree/boxes.hpp",
        "    include(nodes_.lower(j), nodes_.upper(j), {row, row}, n_features());\n  }\n}",
        "  }\n}",
        ONLINE_EQUALS_BATCH,
        only="cloud",
        is_variant=True,
    ),
    Mutant(
        "the near child is born at its grandparent's time",
        "src/core/mondrian/tree/extend.hpp",
        "work.tasks.push_back({near, near_begin, near_end, time, rng_.exponential()})",
        "work.tasks.push_back({near, near_begin, near_end, task.birth_time, rng_.exponential()})",
        ONLINE_EQUALS_BATCH,
        is_variant=True,
    ),
    Mutant(
        "both children go on with one clock",
        "src/core/mondrian/tree/extend.hpp",
        "both ? rng_.exponential() : clock",
        "clock",
        ONLINE_EQUALS_BATCH,
        is_variant=True,
    ),
    Mutant(
        "the clock does not run down",
        "src/core/mondrian/tree/extend.hpp",
        "return rate > 0.0 ? std::max(clock - rate * duration, 0.0) : clock;",
        "return rate * duration >= 0.0 ? clock : clock;",
        ONLINE_EQUALS_BATCH,
        is_variant=True,
    ),
    Mutant(
        "a proposal that misses the box is taken",
        "src/core/mondrian/process/cut.hpp",
        "if (range.lower <= location && location < range.upper) {",
        "if (range.lower <= location && range.lower < range.upper) {",
        ONLINE_EQUALS_BATCH,
        only="wide",
        is_variant=True,
    ),
    Mutant(
        "a right child goes on with the bounds of the left",
        "src/core/mondrian/tree/grow.hpp",
        "        work.bounds.rewind(block.mark);\n",
        "",
        ONLINE_EQUALS_BATCH,
        only="wide",
        is_variant=True,
    ),
    Mutant(
        "the posterior counts labels both children hold once",
        "src/core/mondrian/labels/walk.hpp",
        "n_labels + sets.size_common(node.left, node.right())",
        "n_labels",
        REFERENCE,
    ),
    Mutant(
        "the walk forgets to weigh the features",
        "src/core/mondrian/process/rates.hpp",
        "rate += weights[d] * distance_to(box.lower[d], box.upper[d], row[d]);",
        "rate += (weights[d] > 0) * distance_to(box.lower[d], box.upper[d], row[d]);",
        REFERENCE,
        is_variant=True,
    ),
    Mutant(
        "pausing looks at the first new point only",
        "src/core/mondrian/tree/pausing.hpp",
        "target().holds_only(leaf, label) && all_equal(points, more, label)",
        "target().holds_only(leaf, label)",
        ONLINE_EQUALS_BATCH,
        is_variant=True,
    ),
    Mutant(
        "relevance keeps what chance takes off",
        "src/core/mondrian/forest/relevance.cpp",
        "relevance[d] += (gain - by_chance) * share;",
        "relevance[d] += gain * share;",
        LEARNED_WEIGHTS,
        is_variant=True,
    ),
    Mutant(
        "a box does not shrink when a point is forgotten",
        "src/core/mondrian/points/box.hpp",
        "    lower[d] = low;\n    upper[d] = high;\n",
        "",
        FORGETTING,
        only="back",
    ),
    Mutant(
        "the boxes above one that shrinks do not",
        "src/core/mondrian/tree/boxes.hpp",
        "return std::exchange(old, now) == now;",
        "return old == now;",
        FORGETTING,
        only="crowd and wide",
        is_variant=True,
    ),
    Mutant(
        "the box of a leaf does not shrink when a point is forgotten",
        "src/core/mondrian/tree/boxes.hpp",
        "(is_upper ? upper : lower)[d] = points.row(nodes_[leaf].first_point)[d];",
        "static_cast<void>(d), static_cast<void>(is_upper);",
        FORGETTING,
        only="predictions and crowd",
        is_variant=True,
    ),
    Mutant(
        "a block that may pause again stays cut",
        "src/core/mondrian/tree/forget.hpp",
        "j != kRoot && target_.may_join(nodes_, links_.parent(j), points)",
        "false && target_.may_join(nodes_, links_.parent(j), points)",
        FORGETTING,
        only="class",
        is_variant=True,
    ),
    Mutant(
        "of the cuts of a block that may pause again only the last is undone",
        "src/core/mondrian/tree/forget.hpp",
        "    j = join(links_.parent(j), points, work, stop);\n",
        "    j = join(links_.parent(j), points, work, stop);\n    break;\n",
        FORGETTING,
        only="class",
        is_variant=True,
    ),
    Mutant(
        "who takes its parent's place takes its time",
        "src/core/mondrian/tree/forget.hpp",
        "  move_node(sibling, j);\n",
        "  const double time = nodes_.split_time(j);\n  move_node(sibling, j);\n"
        "  if (!nodes_[j].is_leaf()) nodes_.split_time(j) = time;\n",
        FORGETTING,
        only="outliers",
        is_variant=True,
    ),
    Mutant(
        "a label that is forgotten stays known above its leaf",
        "src/core/mondrian/labels/target.hpp",
        "    sets_.erase(j, label);\n",
        "",
        FORGETTING,
        only="predictions",
        is_variant=True,
    ),
    Mutant(
        "the point that lies deepest goes",
        "src/core/mondrian/forest/learning.cpp",
        "  const PointChanges changes(std::move(admission.leaving)",
        "    std::size_t most = 0;\n"
        "    for (std::size_t i = 0; admission.leaving.size() == 1 && i < points_.size(); ++i) {\n"
        "      const Slot slot = static_cast<Slot>(i);\n"
        "      Path path;\n"
        "      find_path(trees_.front().nodes(), kRoot, points_.row(slot), path);\n"
        "      if (path.size() > most) admission.leaving.front() = slot;\n"
        "      most = std::max(most, path.size());\n"
        "    }\n"
        "  const PointChanges changes(std::move(admission.leaving)",
        FORGETTING,
        only="blindly",
        is_variant=True,
    ),
    Mutant(
        "a sample that comes again in a batch is another point",
        "src/core/mondrian/forest/point_changes.hpp",
        "index.find(hash, [&](Slot k) { return is_fresh(k, row, label); })",
        "kNoSlot",
        COPIES,
        only="anywhere",
        is_variant=True,
    ),
    Mutant(
        "a leaf does not learn that a point counts less",
        "src/core/mondrian/tree/recount.hpp",
        "points.label(slot), by);",
        "points.label(slot), std::max(by, 0));",
        COPIES,
        only="forgetting",
        is_variant=True,
    ),
    Mutant(
        "a point that is counted anew keeps its old count in the store",
        "src/core/mondrian/forest/forgetting.cpp",
        "points_.set_count(slot, points_.count(slot) + by);",
        "static_cast<void>(slot), static_cast<void>(by);",
        COPIES,
        is_variant=True,
    ),
    Mutant(
        "relevance does not know how often points count",
        "src/core/mondrian/forest/relevance.cpp",
        "LabelImpurity(points.labels(), n_classes, counts)",
        "LabelImpurity(points.labels(), n_classes, RelativeCounts())",
        COPIES,
        only="which_features",
        is_variant=True,
    ),
    Mutant(
        "squares of heavy weights lose their upper half",
        "src/core/samples/weight.hpp",
        "high_ += high + (low_ < low ? 1 : 0);",
        "static_cast<void>(high);",
        ORDER_FREE,
        only="with_weights and sizes",
        is_variant=True,
    ),
    Mutant(
        "a sum forgets to borrow from the next digit",
        "src/core/base/exact_sum.hpp",
        "carry = (more >> 32) + borrow;",
        "carry = (more >> 32) + 0 * borrow;",
        ORDER_FREE,
        only="others_decide and numbers",
        is_variant=True,
    ),
]
