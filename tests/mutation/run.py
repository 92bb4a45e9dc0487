"""The mutants: known ways to break the core, each of which the tests must notice.

    python tests/mutation/run.py [--rooms ROOM ... | --only TEXT | --all | --check] [--least N]

Each mutant is a copy of the sources with one piece of text replaced. It is built like the real
core and given to the tests named with it. One of them must fail without the help of the invariant
checker, which would see some of the mutants at once. The machinery is in `workshop.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from mutation import mondrian, order_free
from mutation.workshop import main

MUTANTS = [*mondrian.MUTANTS, *order_free.MUTANTS]
# The unbroken core must pass these tests before any mutant is judged: a file and a `-k` expression.
SOUND = (mondrian.REFERENCE, "recount")


if __name__ == "__main__":
    sys.exit(main(MUTANTS, SOUND, __doc__.splitlines()[0]))
