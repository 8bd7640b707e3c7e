"""`vectorize`: makes a function of examples broadcast over leading axes, by nested vmap."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ..._api.batching.vmap import vmap
from ..._base.errors import ArgumentError, OptionError, ShapeError
from ..._base.wrapping import wraps
from ..._operands.checks import check, type_of
from ..._ops.structure.shape import as_array_or_tracer
from .._manipulation.broadcasting import broadcast_shapes
from .._manipulation.shapes import squeeze

_CORE = r"\((?:\w+(?:,\w+)*)?,?\)"


def _parse(signature: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    text = signature.replace(" ", "")
    if not re.fullmatch(rf"(?:{_CORE}(?:,{_CORE})*)?->{_CORE}(?:,{_CORE})*", text):
        raise OptionError(
            f"vectorize: not a valid gufunc signature: {signature!r}", instead="for example '(m,n),(n)->(m)'"
        )
    left, right = text.split("->")
    sides = [[tuple(re.findall(r"\w+", core)) for core in re.findall(_CORE, side)] for side in (left, right)]
    return sides[0], sides[1]


def _bind(lengths: dict[str, int], core: tuple[str, ...], shape: tuple[int, ...], where: str) -> None:
    """Records the lengths of core axes by name. Raises `ShapeError` if a name already has another length."""
    for name, n in zip(core, shape, strict=True):
        if lengths.setdefault(name, n) != n:
            raise ShapeError(
                f"vectorize: inconsistent size for core dimension {name!r}: {n} vs {lengths[name]} {where}",
                shapes=[shape],
            )


def _check_results(result: Any, outs: list[tuple[str, ...]], lengths: dict[str, int], where: str) -> None:
    """Raises unless the results of one example have the shapes of the signature."""
    results = result if isinstance(result, tuple) else (result,)
    if len(outs) > 1 and not isinstance(result, tuple):
        raise ArgumentError(
            f"vectorize: output must be a tuple when multiple outputs are expected, got: {result} {where}"
        )
    if len(outs) != len(results):
        raise ArgumentError(
            f"vectorize: wrong number of output arguments: expected {len(outs)}, got {len(results)} {where}"
        )
    for x, core in zip(results, outs, strict=True):
        shape = type_of(x).shape
        if len(shape) != len(core):
            raise ShapeError(
                f"vectorize: output shape {shape} does not match core dimensions {core} {where}", shapes=[shape]
            )
        _bind(lengths, core, shape, where)


def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Sequence[int | str] = (), signature: str | None = None
) -> Callable[..., Any]:
    """A version of `pyfunc` that broadcasts its arguments (as ``numpy.vectorize``), by nested `vmap`.

    Args:
      pyfunc: traceable function of arrays, written for arguments with core axes only.
      excluded: positions or names of arguments that are passed without broadcasting.
      signature: names of the core axes of arguments and results, as in ``'(m,n),(n)->(m)'``; None means no core axes:
        arguments are scalars.

    Returns:
      A function of the same arguments: axes before the core axes are broadcast, and precede the core axes of the
      results. Calls raise `OptionError` if `signature` is not of this form, `ShapeError` if arguments do not broadcast
      or do not match it, and `ArgumentError` if the number of arguments or results differs from it.

    >>> jnp.vectorize(lambda x, y: x + y)(jnp.ones((2, 1)), jnp.ones(3)).shape
    (2, 3)
    """

    where = f"on vectorized function with excluded={set(excluded) or '{}'} and signature={signature!r}"

    @wraps(pyfunc)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        missing = {i for i, x in enumerate(args) if x is None and i not in excluded}
        if signature and missing:
            raise ArgumentError(
                f"vectorize: Cannot pass None at locations {missing} with {signature=}", instead=f"excluded={missing}"
            )
        # None stands for an argument that is left out, and is not mapped.
        positions = [i for i, x in enumerate(args) if i not in excluded and x is not None]
        named = {k: v for k, v in kwargs.items() if k in excluded or v is None}
        keywords = [k for k in kwargs if k not in named]
        arrays = check("vectorize", *[args[i] for i in positions], *[kwargs[k] for k in keywords])
        cores, outs = _parse(signature) if signature else ([()] * len(arrays), None)
        if len(cores) != len(arrays):
            raise ArgumentError(
                f"vectorize: wrong number of positional arguments: expected {len(cores)}, got {len(arrays)} {where}"
            )
        lengths: dict[str, int] = {}

        @wraps(pyfunc)
        def call(*examples: Any) -> Any:
            # Excluded arguments stay in their places; examples replace the arrays.
            filled = list(args)
            for i, x in zip(positions, examples, strict=False):
                filled[i] = x
            result = pyfunc(*filled, **named, **dict(zip(keywords, examples[len(positions) :], strict=True)))
            if outs is not None:
                # A copy of the lengths, as names that only results have are bound anew in each trace.
                _check_results(result, outs, dict(lengths), where)
            return result

        loops = []
        for x, core in zip(arrays, cores, strict=True):
            shape = type_of(x).shape
            if len(shape) < len(core):
                raise ShapeError(
                    f"vectorize: input {type_of(x).short} does not have enough dimensions for all core dimensions "
                    f"{core} {where}",
                    shapes=[shape],
                )
            _bind(lengths, core, shape[len(shape) - len(core) :], where)
            loops.append(shape[: len(shape) - len(core)])
        return _mapped(call, loops)(*_squeezed([as_array_or_tracer(x) for x in arrays], loops))

    return wrapped


def _mapped(call: Callable[..., Any], loops: Sequence[tuple[int, ...]]) -> Callable[..., Any]:
    """`call` over all outer axes of its arguments, which are `loops`."""
    outer = broadcast_shapes(*loops)
    for axis in reversed(range(len(outer))):  # vmap the last outer axis first
        in_axes = []
        for loop in loops:
            at = axis - (len(outer) - len(loop))
            # An axis of length 1 that broadcasts is not mapped: `_squeezed` has removed it.
            is_mapped = at >= 0 and loop[at] == outer[axis] and (loop[at] != 1 or outer[axis] == 1)
            in_axes.append(0 if is_mapped else None)
        if any(a == 0 for a in in_axes):
            call = vmap(call, in_axes=tuple(in_axes))
    return call


def _squeezed(arrays: list[Any], loops: Sequence[tuple[int, ...]]) -> list[Any]:
    """The arguments without the outer axes of length one that broadcast: vmap does not map the argument there."""
    outer = broadcast_shapes(*loops)
    for k, loop in enumerate(loops):
        offset = len(outer) - len(loop)
        ones = tuple(i for i, n in enumerate(loop) if n == 1 and outer[i + offset] != 1)
        arrays[k] = squeeze(arrays[k], ones) if ones else arrays[k]
    return arrays
