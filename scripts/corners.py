#!/usr/bin/env python3
"""Writes docs/corners.md: how each function answers at the corners of its operands.

python scripts/corners.py              all rows, some minutes
python scripts/corners.py NAME ...     the rows of these functions, after printing their differences from the truth

Needs what 3rdparty/dev.txt lists. packages/core/tests/conformance/test_corners.py compares.
"""

from __future__ import annotations

import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
sys.path[:0] = [str(REPOSITORY / "packages" / "core" / folder) for folder in ("src", "tests")]

import corner_page  # noqa: E402
import corners  # noqa: E402
from corner_decisions import decision  # noqa: E402


def tell(names: list[str]) -> None:
    """Prints the differences of some functions, each with the letter of its decision."""
    unknown = [name for name in names if name not in corner_page.FUNCTIONS]
    if unknown:
        raise SystemExit(f"no row of corner_functions.py is called {', '.join(unknown)}: names are as lax.digamma")
    for name in names:
        for difference in corners.sweep(name):
            known = decision(difference)
            print(known.letter if known else "?", difference)


if __name__ == "__main__":
    if sys.argv[1:]:
        tell(sys.argv[1:])
    corner_page.PAGE.write_text(corner_page.page(sys.argv[1:] or corner_page.FUNCTIONS))
