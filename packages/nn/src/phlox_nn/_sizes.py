"""`sizes`: numbers and bytes of parameters by module, from the parameters alone."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import phlox.numpy as jnp
from phlox.extend import path_matcher

from . import _checks, _paths
from ._paths import Pattern


@dataclasses.dataclass(frozen=True)
class Sizes:
    """The result of `sizes`: numbers by dotted path of modules and arrays, and the totals. Printed it is a table."""

    parameters: int
    bytes: int
    #: (parameters, bytes, those that are trained) by path
    modules: dict[str, tuple[int, int, int]]
    trained: int

    def __str__(self) -> str:
        rows = [*self.modules.items(), ("total", (self.parameters, self.bytes, self.trained))]
        lines: list[tuple[str, ...]] = [("path", "parameters", "bytes", "trained")]
        lines += [(path, *(f"{number:,}" for number in numbers)) for path, numbers in rows]
        if self.trained == self.parameters:
            lines = [line[:3] for line in lines]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip() for line in lines
        )

    __repr__ = __str__


def sizes(params: Any, depth: int = 2, *, frozen: Pattern | None = None) -> Sizes:
    """Returns the numbers and bytes of parameters by module. `summary` also has outputs and FLOPs, but needs inputs.

    Args:
      params: nested dicts of arrays, or of their shapes, as from ``phlox.eval_shape(model.init, key)``.
      depth: down to which level of the dicts there are rows.
      frozen: a pattern of parameters that are not trained, as that of ``make_step(freeze=...)``.

    Returns:
      A `Sizes`: attributes `parameters`, `bytes`, `trained`, and `modules` by path; each counts all that is below it.

    Raises:
      ArgumentError: `depth` is no positive integer.

    >>> import phlox
    >>> import phlox_nn as nn
    >>> params = nn.Sequential(nn.Linear(4, 8), nn.Residual(nn.Linear(8, 8))).init(phlox.random.key(0))
    >>> sizes(params, depth=1, frozen="0")
    path   parameters  bytes  trained
    0              40    160        0
    1              72    288       72
    total         112    448       72
    """
    _checks.size_of("sizes", depth=depth)
    is_frozen = (lambda path: False) if frozen is None else path_matcher(frozen)
    modules: dict[str, tuple[int, int, int]] = {}
    total = (0, 0, 0)
    for path, leaf in _paths.leaves(params):
        count = math.prod(jnp.shape(leaf) if not hasattr(leaf, "shape") else leaf.shape)
        own = (count, count * jnp.dtype(jnp.result_type(leaf)).itemsize, 0 if is_frozen(_paths.text(path)) else count)
        total = _sum(total, own)
        for level in range(1, min(depth, len(path)) + 1):
            name = _paths.text(path[:level])
            modules[name] = _sum(modules.get(name, (0, 0, 0)), own)
    return Sizes(total[0], total[1], modules, total[2])


def _sum(first: tuple[int, int, int], second: tuple[int, int, int]) -> tuple[int, int, int]:
    return first[0] + second[0], first[1] + second[1], first[2] + second[2]
