"""The common size of the axes that `vmap` and `pmap` map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._base.errors import AxisSizeError


def _named(path: str) -> str:
    return path if path.startswith(("kwargs[", "argument ")) else f"argument {path}"


def check_sizes(mapped: Sequence[tuple[str, int, Any]], function: str = "vmap", expected: int | None = None) -> int:
    """The common size of the mapped axes, which are given as (argument path, axis, aval).

    Raises `AxisSizeError` if an axis does not exist or if sizes differ, also from `expected`.
    """
    sizes: dict[int, list[str]] = {}
    if expected is not None:
        sizes[expected] = []
    for path, axis, aval in mapped:
        if not -aval.ndim <= axis < aval.ndim:
            raise AxisSizeError(
                f"{function} was requested to map its argument along axis {axis}, which implies that its rank should "
                f"be at least {axis + 1 if axis >= 0 else -axis}, but is only {aval.ndim} (its shape is {aval.shape}): "
                f"{_named(path)} of type {aval.short}",
                instead=f"in_axes=None for {path}" + (f", or an axis below {aval.ndim}" if aval.ndim else ""),
                path=path,
                axis=axis,
                sizes=list(mapped),
            )
        sizes.setdefault(aval.shape[axis], []).append(f"axis {axis} of {_named(path)} of type {str(aval).lstrip('~')}")
    if len(sizes) == 1:
        return next(iter(sizes))
    lines = [f"the `axis_size` argument was {expected}"] if expected is not None else []
    most = max(map(len, sizes.values()))
    for size, axes in sorted(sizes.items(), key=lambda item: -len(item[1])):
        some = "most" if len(axes) == most else "some"
        if len(axes) == 1:
            lines.append(f"one axis had size {size}: {axes[0]}")
        elif axes:
            lines.append(f"{some} axes ({len(axes)} of them) had size {size}, e.g. {axes[0]}")
    raise AxisSizeError(
        f"{function} got inconsistent sizes for array axes to be mapped:\n  * " + ";\n  * ".join(lines),
        instead="in_axes=None for arguments that are the same for every example",
        sizes=list(mapped),
    )
