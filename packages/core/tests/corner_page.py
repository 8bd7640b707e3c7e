"""The page docs/corners.md: a row for each function, a cell for each class of operands."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import jaxlib

import corners
from corner_decisions import DECISIONS, decision
from corner_functions import FUNCTIONS

PAGE = Path(__file__).parents[3] / "docs" / "corners.md"

_TOP = """# Corners

Numbers at the corners of functions: what phlox answers at zeros, infinities, nan and the ends of ranges, and where this
is not the truth. For example

```python
>>> import phlox, phlox.numpy as jnp
>>> jnp.sqrt(complex(-1, -0.0))
Array(0.-1.j, dtype=complex64, weak_type=True)
>>> phlox.grad(jnp.hypot, (0, 1))(jnp.inf, 1.0)
(Array(1., dtype=float32, weak_type=True), Array(0., dtype=float32, weak_type=True))
```

Each of {count} functions is called with {calls} operands. The operands are all combinations of

- **zero**: 0.0 and -0.0;
- **subnormal**: an eighth of the smallest normal number;
- **tiny**: the smallest normal number and its root;
- **end**: ends of the domain, and the last numbers before the result overflows or underflows;
- **largest**: the largest number, its half and its root;
- **inf** and **nan**;
- **integers**: the least and the largest of each dtype, 0, 1, -1 and a few more;

of both signs, beside numbers that are no corners. They are float16, bfloat16, float32, float64, complex64, complex128,
bool, int8, uint8, int32, uint32 and int64. Also called are arrays that are **empty**, and numbers (**rank 0**), and
arrays of 1,024 elements, from which on some functions have another form on CPUs.

The truth is mpmath's (40 digits and more), that of NumPy's functions in 80 bits with the signs of their zeros, or
SciPy's. Derivatives are those of mpmath, as limits from both sides; at a kink any number between the two is right.
Values may be off by {value} eps (4 eps in half precision), first derivatives by {first} eps, second ones by {second}
eps. Derivatives of incomplete and hypergeometric functions have tests of their own. How accurate functions are between
the corners is on the [page on special functions](special-functions.md).

The table is that of jaxlib {jaxlib} on a CPU. A cell with a dot has no difference from the truth. A letter is a
difference that is explained below the table: `a` of values, `a'` of first derivatives, `a''` of second ones. A cell
without anything does not exist: the function does not take such operands. A test computes a tenth of the rows each day, and fails if a cell has a difference without a letter.
`python scripts/corners.py` writes this page, `python scripts/corners.py numpy.exp2` one row, and prints its differences.

"""


def version() -> str:
    """The jaxlib whose numbers the page has."""
    return PAGE.read_text().partition("jaxlib ")[2].split()[0]


def rows() -> dict[str, list[str]]:
    """The cells of each row of the page."""
    lines = [line.split("|") for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    return {line[1].strip(" `"): [cell.strip() for cell in line[2:-1]] for line in lines}


def cells(name: str) -> tuple[dict[str, set[str]], list[corners.Difference]]:
    """The marks of each column of a function, and its differences without a decision."""
    marks: dict[str, set[str]] = {column: set() for column in corners.columns_of(name)}
    unexplained = []
    for difference in corners.sweep(name):
        known = decision(difference)
        if known is None:
            unexplained.append(difference)
            continue
        mark = known.letter + {"value": "", "first": "'", "second": "''"}[difference.what]
        for corner in difference.corners:
            marks.setdefault(corner, set()).add(mark)
    return marks, unexplained


def page(names: Collection[str] = FUNCTIONS) -> str:
    """The page, with new rows for these functions, the others as they are.

    Raises if a difference has no decision, or a decision no difference.
    """
    known, table, missing, letters = rows(), [], [], set()
    for name in FUNCTIONS:
        texts = known.get(name)
        if texts is None and name not in names:
            continue
        if name in names:
            marks, unexplained = cells(name)
            missing += unexplained
            texts = [" ".join(sorted(marks[c])) or "·" if c in marks else "" for c in corners.COLUMNS]
        letters |= {mark.rstrip("'") for cell in texts for mark in cell.split()}
        table.append(f"| `{name}` | {' | '.join(texts)} |")
    if missing:
        raise SystemExit("differences without a decision:\n" + "\n".join(map(str, missing)))
    unused = {d.letter for d in DECISIONS} - letters
    if unused:
        raise SystemExit(f"decisions without a difference: {sorted(unused)}")
    calls = f"{round(sum(corners.count_of(name) for name in FUNCTIONS), -3):,}"
    of_jaxlib = jaxlib.__version__ if names is FUNCTIONS else version()
    top = _TOP.format(count=len(table), calls=calls, jaxlib=of_jaxlib, **corners.TOLERANCE)
    head = [f"| function | {' | '.join(corners.COLUMNS)} |", f"|---|{'---|' * len(corners.COLUMNS)}"]
    reasons = [f"- **{d.letter}**: {d.reason}" for d in sorted(DECISIONS, key=lambda d: d.letter)]
    return top + "\n".join([*head, *table, "", "## The differences", "", *reasons]) + "\n"
