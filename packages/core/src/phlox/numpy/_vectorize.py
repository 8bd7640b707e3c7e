"""`vectorize`: a function of examples as a function that broadcasts over all axes in front."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from .._api.vmap import vmap
from .._base.errors import OptionError, ShapeError
from .._base.wrapping import wraps
from .._ops.shape import own
from ._promote import check, type_of
from ._shapes import broadcast_shapes, squeeze

_CORE = r"\((?:\w+(?:,\w+)*)?,?\)"


def _parse(signature: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    text = signature.replace(" ", "")
    if not re.fullmatch(rf"(?:{_CORE}(?:,{_CORE})*)?->{_CORE}(?:,{_CORE})*", text):
        raise OptionError(f"vectorize: {signature!r} is no signature", instead="for example '(m,n),(n)->(m)'")
    left, right = text.split("->")
    sides = [[tuple(re.findall(r"\w+", core)) for core in re.findall(_CORE, side)] for side in (left, right)]
    return sides[0], sides[1]


def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Sequence[int | str] = (), signature: str | None = None
) -> Callable[..., Any]:
    """A version of `pyfunc` that broadcasts its arguments (as ``numpy.vectorize``), by nested `vmap`.

    Args:
      excluded: positions or names of arguments that are passed as they are.
      signature: core axes of arguments and results, as ``'(m,n),(n)->(m)'``; by default all are scalars.

    >>> import phlox.numpy as jnp
    >>> jnp.vectorize(lambda x, y: x + y)(jnp.ones((2, 1)), jnp.ones(3)).shape
    (2, 3)
    """

    @wraps(pyfunc)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        positions = [i for i in range(len(args)) if i not in excluded]
        named = {k: v for k, v in kwargs.items() if k in excluded}
        keywords = [k for k in kwargs if k not in excluded]
        arrays = check("vectorize", *[args[i] for i in positions], *[kwargs[k] for k in keywords])
        cores = _parse(signature)[0] if signature else [()] * len(arrays)
        if len(cores) != len(arrays):
            raise ShapeError(f"vectorize: signature {signature!r} for {len(arrays)} arguments")

        def call(*examples: Any) -> Any:
            filled = list(args)
            for i, x in zip(positions, examples, strict=False):
                filled[i] = x
            return pyfunc(*filled, **named, **dict(zip(keywords, examples[len(positions) :], strict=True)))

        loops = []
        for x, core in zip(arrays, cores, strict=True):
            shape = type_of(x).shape
            if len(shape) < len(core):
                raise ShapeError(f"vectorize: {type_of(x).short} has fewer axes than its core {core}")
            loops.append(shape[: len(shape) - len(core)])
        outer = broadcast_shapes(*loops)
        mapped = call
        prepared = [own(x) for x in arrays]
        for depth in range(len(outer)):  # from the innermost outer axis outwards
            axis = len(outer) - 1 - depth
            in_axes = []
            for loop in loops:
                at = axis - (len(outer) - len(loop))
                in_axes.append(
                    0 if at >= 0 and loop[at] == outer[axis] and (loop[at] != 1 or outer[axis] == 1) else None
                )
            mapped = vmap(mapped, in_axes=tuple(in_axes)) if any(a == 0 for a in in_axes) else mapped
        # Axes of length one that broadcast are dropped; vmap leaves their argument alone there.
        for k, loop in enumerate(loops):
            offset = len(outer) - len(loop)
            ones = tuple(i for i, n in enumerate(loop) if n == 1 and outer[i + offset] != 1)
            prepared[k] = squeeze(prepared[k], ones) if ones else prepared[k]
        return mapped(*prepared)

    return wrapped
