"""Draws all pictures of the documentation: ``python -m docs.pictures``.

``python -m docs.pictures readme`` draws `docs/stream.svg` instead, the only picture under version
control. Its legend holds measured seconds, so no build draws it.
"""

from __future__ import annotations

import sys
import time

from . import pictures, stream


def main(arguments: list[str]) -> int:
    """Draw what the arguments name; returns the exit status."""
    if arguments == ["readme"]:
        stream.save()
        return 0
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    for picture in pictures():
        start = time.perf_counter()
        picture.save()
        print(f"{picture.path.parent.name}/{picture.path.name}: ", end="")
        print(f"{time.perf_counter() - start:.1f} s, {picture.path.stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
