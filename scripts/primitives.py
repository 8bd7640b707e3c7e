#!/usr/bin/env python3
"""Writes docs/primitives.md: which rules each primitive of phlox has, and which of JAX's primitives phlox has not.

python scripts/primitives.py        tests/repository/test_primitives.py compares
"""

from __future__ import annotations

import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
sys.path.insert(0, str(REPOSITORY / "packages" / "core" / "src"))

import phlox  # noqa: E402, F401  (before its private modules)
from phlox._ir.rules import RULES  # noqa: E402
from phlox._ops import all_primitives  # noqa: E402

PAGE = REPOSITORY / "docs" / "primitives.md"
#: the rules that have a column; the others belong to few primitives
COLUMNS = ("types", "lower", "jvp", "linearize", "transpose", "batch", "extend", "steps", "effects", "pad")

#: Primitives of jax.lax, jax.lax.linalg and jax.extend.core.primitives that phlox has not, and why.
ABSENT = {
    "after_all_p": "tokens are arrays without elements: `optimization_barrier_p` ties them",
    "call_p": "`jit_p` is the one call",
    "closed_call_p": "`jit_p` is the one call",
    "create_token_p": "as `after_all_p`",
    "device_put_p": "inside of programs only layout over a mesh can be said: `reshard_p`",
    "empty2_p": "`lax.empty` makes zeros",
    "get_p": "`ref_read_p`: a program reads a reference once, where it begins",
    "polynomial_p": "`mul_p` and `add_p` of Horner's rule; a primitive of JAX from 0.12 on",
    "ragged_all_to_all_p": "the function is composed of `all_gather_p`: the compiler has it on GPUs and TPUs alone",
    "scatter_sub_p": "`scatter_add_p` of what is negated",
    "stack_p": "`concatenate_p` of reshaped arrays",
    "swap_p": "`ref_write_p`: a program writes a reference once, where it ends",
    "tile_p": "`broadcast_in_dim_p` and `reshape_p`",
    "unstack_p": "slices",
}


def _declarations(of_programs: bool) -> list[str]:
    """A table of the rules."""
    rows = [
        f"| {name} | `{rule.call.replace('|', '/')}` | {rule.meaning} |"
        for name, rule in RULES.items()
        if rule.of_programs is of_programs
    ]
    return ["", "| rule | call | meaning |", "|---|---|---|", *rows]


def page() -> str:
    lines = [
        "# Primitives",
        "",
        "The operations that programs of phlox consist of, and the rules that each has. A rule that is absent is a",
        "statement: the transformation that needs it refuses the operation, and says so by name. In Python a primitive",
        "is `phlox.lax.NAME_p`. This page is written by `scripts/primitives.py`.",
        "",
        "## The rules",
        "",
        "Declared in `packages/core/src/phlox/_ir/rules.py`. Those of the second table are for operations that hold",
        "programs. Such operations also state the functions `bodies` and `rebuild`, from which most rules follow: see",
        "`packages/core/src/phlox/_trace/program_primitive.py`.",
        *_declarations(of_programs=False),
        *_declarations(of_programs=True),
        "",
        "## The primitives",
        "",
        f"| primitive | {' | '.join(COLUMNS)} |",
        f"|---|{'---|' * len(COLUMNS)}",
    ]
    for name, primitive in sorted(all_primitives().items()):
        has = ["x" if getattr(primitive, rule) is not None else "" for rule in COLUMNS]
        lines.append(f"| {name} | {' | '.join(has)} |")
    lines += ["", "## JAX's primitives that phlox has not", "", "| primitive | instead |", "|---|---|"]
    lines += [f"| {name} | {why} |" for name, why in sorted(ABSENT.items())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
