"""The table of forms: what programs for CPUs have in place of the portable lowering rule of a primitive.

A row is a `Form`: the condition, the rule that writes it, and what was measured. The first row that applies counts, so
that the kernels of phlox-kernels come first. The figures are from two cores of x86-64; `./bench kernels` measures them
again, and docs/performance.md has the table.
"""

from __future__ import annotations

from ..._ir.primitive import Primitive
from ..._xla.forms import Form
from . import depthwise, extrema, functions, kernels, packed_sort, positions, prefixes, top_k

_TABLES: tuple[dict[Primitive, list[Form]], ...] = (
    kernels.FORMS,
    functions.FORMS,
    extrema.FORMS,
    positions.FORMS,
    prefixes.FORMS,
    packed_sort.FORMS,
    top_k.FORMS,
    depthwise.FORMS,
)

FORMS: dict[Primitive, list[Form]] = {}
for table in _TABLES:
    for primitive, rows in table.items():
        FORMS.setdefault(primitive, []).extend(rows)
