"""A compiled call with all that running it needs, and the keys that calls are filed under: the hot path of `jit`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._base import pytree
from .._base.pytree import PyTreeDef
from .._ir.avals import typeof_value
from .._xla.array import Array, wrap
from .._xla.hosts import scalar
from .._xla.program import Program

_NUMBERS = frozenset((float, int, bool, complex))
_LEAF = pytree.tree_structure(0)


def key_of_leaves(first: Any, leaves: Sequence[Any]) -> tuple[Any, ...] | None:
    """`first`, then the key of each array and the class of each number; None when a leaf is something else."""
    parts = list(first) if type(first) is list else [first]
    for x in leaves:
        kind = type(x)
        if kind is Array:
            parts.append(x._key)
        elif kind in _NUMBERS:
            parts.append(kind)
        elif kind is np.ndarray:
            aval = typeof_value(x)
            if aval is None:
                return None
            parts.append(aval)
        else:
            return None
    return tuple(parts)


class Entry:
    """A compiled call: the program, the arrays hidden in it, and which leaves it reads.

    Attributes:
      whole: whether the leaves are the arguments of the program as they stand.
      single: whether the result is one array.
      calls: how often it ran.
      direct: both, so that `execute`, `handlers`, `aval` and `key` are all it takes.
    """

    __slots__ = (
        "aval", "calls", "consts", "direct", "donates", "execute", "handlers", "kept", "key", "out_tree", "program",
        "single", "whole",
    )  # fmt: skip

    def __init__(
        self, program: Program, consts: list[Array], kept: list[int], count: int, out_tree: PyTreeDef, donates: bool
    ):
        self.program = program
        self.calls = 0
        self.consts = consts
        self.kept = kept
        self.out_tree = out_tree
        self.donates = donates
        self.whole = not consts and len(kept) == count and not program.arrange and program.watch is None
        self.single = len(program.out_avals) == 1 and out_tree == _LEAF
        self.direct = self.whole and self.single
        self.execute, self.handlers = program.execute, program.handlers
        self.aval: Any = program.out_avals[0] if self.single else None
        self.key: Any = program.out_keys[0] if self.single else None

    def buffer(self, x: Any, i: int) -> Any:
        """The buffer of argument number `i`, a number or a NumPy array."""
        if type(x) in _NUMBERS and not self.donates:
            return scalar(x)._buf
        return self.program.adopt(x, i, self.donates)._buf

    def run(self, leaves: Sequence[Any]) -> list[Array]:
        """Executes on flat arguments, some of which may be numbers or NumPy arrays."""
        self.calls += 1
        program = self.program
        if not self.whole:
            leaves = [*self.consts, *[leaves[i] for i in self.kept]]
            arrays = [x if type(x) is Array else program.adopt(x, i, self.donates) for i, x in enumerate(leaves)]
            return program.run(arrays)
        bufs = [x._buf if type(x) is Array else self.buffer(x, i) for i, x in enumerate(leaves)]
        outs = self.execute(bufs).consume_with_handlers(self.handlers)
        return [wrap(b, a, k) for b, a, k in zip(outs, program.out_avals, program.out_keys, strict=True)]
