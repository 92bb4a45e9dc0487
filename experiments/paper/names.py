"""Names of the methods, as figures and tables show them."""

from __future__ import annotations

MF = "MF"  # the paper's model
LEARNED = "MF learned"  # the library's default: feature weights and discount are learned
AT_ONCE = "MF at once"  # the paper's model, trained on all data at once
BREIMAN, ERT_K, ERT_1 = "Breiman-RF", "ERT-k", "ERT-1"
SAFFARI = "ORF-Saffari"  # with the values of its article, as in the paper
SAFFARI_TUNED = "ORF-Saffari, tuned"  # with the best published values
DENIL, DYNAMIC_TREES = "ORF-Denil", "dynamic trees"
FEW_TREES = 10  # River is slow
MF_10, LEARNED_10, AMF_10, ARF_10 = (
    f"{name}, {FEW_TREES} trees" for name in (MF, LEARNED, "River AMF", "River ARF")
)

RETRAINED = (BREIMAN, ERT_K, ERT_1)  # on every prefix of the data
