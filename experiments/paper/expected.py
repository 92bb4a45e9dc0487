"""Reference values: those the paper prints and those of independent runs of its model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Expected:
    """Depth from the paper, accuracy from independent runs."""

    depth: tuple[float, float] | None  # mean and tolerance, the paper's appendix E
    accuracy: tuple[float, float]  # range over independent runs
    tolerance: float = 0.006
    seeds: int = 5  # more where runs vary much


EXPECTED = {
    "usps": Expected((19.1, 1.3), (0.930, 0.935)),
    "satimages": Expected((17.4, 1.6), (0.892, 0.894)),
    "letter": Expected((23.2, 1.8), (0.962, 0.966)),
    "dna": Expected((12.0, 0.3), (0.673, 0.679), tolerance=0.02, seeds=20),
    "dna†": Expected(None, (0.905, 0.905), seeds=20),
}
