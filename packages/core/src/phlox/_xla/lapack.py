"""Custom calls of LAPACK routines, which jaxlib takes from SciPy's LAPACK.

SciPy is imported when the first program that calls a routine is lowered, because few programs need it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence

from .._base.errors import UnsupportedError
from .._ir import dtypes
from .._ir.avals import ShapedArray, shaped
from .foreign import foreign_call, row_major, typed
from .text import Function, Value

_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
Attribute = bool | int | str


def load_for(targets: Iterable[str]) -> None:
    """Registers LAPACK's routines with the runtime if one of these custom call targets is among them."""
    if any(name.startswith(("lapack_", "tridiagonal_solve_perturbed")) for name in targets):
        _load()


@functools.cache
def _load() -> None:
    from jaxlib.cpu import _lapack  # imports SciPy, for a tenth of a second

    from .targets import register_ffi_target, register_ffi_target_as_batch_partitionable

    _lapack.initialize()
    for name, handler in _lapack.registrations().items():
        register_ffi_target(name, handler, api_version=int(name.endswith("_ffi")))
        if name.endswith("_ffi"):
            register_ffi_target_as_batch_partitionable(name)


def lapack(
    f: Function,
    routine: str,
    operands: Sequence[Value],
    outs: Sequence[ShapedArray],
    *,
    aliases: Mapping[int, int] | None = None,
    **attributes: Attribute,
) -> list[Value]:
    """Adds the call of a routine, such as ``potrf``, on stacks of matrices and vectors.

    `routine` is its name without the letter of the element type. Attributes are bools, 32-bit integers, or letters. The
    arrays with the most axes are stacks of matrices, and have Fortran's column-major layout; the others are row-major.
    """
    return _call(f, f"lapack_{letter(operands[0].aval)}{routine}_ffi", operands, outs, aliases, attributes)


def perturbed_tridiagonal_solve(f: Function, operands: Sequence[Value]) -> Value:
    """Adds the call of jaxlib's own solver of tridiagonal systems, which moves small pivots away from zero."""
    letter(operands[0].aval)
    return _call(f, "tridiagonal_solve_perturbed_ffi", operands, [operands[-1].aval], None, {})[0]


def has_routines(aval: ShapedArray) -> bool:
    """Whether LAPACK has routines for this element type."""
    return aval.dtype.name in _LETTERS


def letter(aval: ShapedArray) -> str:
    """LAPACK's letter for an element type. Raises `UnsupportedError` if LAPACK has no routines for the type."""
    found = _LETTERS.get(aval.dtype.name)
    if found is None:
        raise UnsupportedError(
            f"linear algebra of {aval.short}: Unsupported dtype {aval.dtype.name}; "
            f"there are routines for {', '.join(_LETTERS)}",
            instead="x.astype('float32')",
        )
    return found


def symmetric(aval: ShapedArray) -> str:
    """The prefix of routines for symmetric matrices, or for Hermitian ones if the elements are complex."""
    return "he" if dtypes.kind(aval.dtype) == "c" else "sy"


def orthogonal(aval: ShapedArray) -> str:
    """The prefix of routines for orthogonal matrices, or for unitary ones if the elements are complex."""
    return "un" if dtypes.kind(aval.dtype) == "c" else "or"


def _call(
    f: Function,
    target: str,
    operands: Sequence[Value],
    outs: Sequence[ShapedArray],
    aliases: Mapping[int, int] | None,
    attributes: Mapping[str, Attribute],
) -> list[Value]:
    _load()
    rank = max(x.aval.ndim for x in operands)
    return foreign_call(
        f,
        target,
        operands,
        outs,
        typed({name: _attribute(value) for name, value in attributes.items()}),
        layouts=([_order(x.aval, rank) for x in operands], [_order(a, rank) for a in outs]),
        aliases=aliases,
    )


def _attribute(value: Attribute) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value} : i32" if isinstance(value, int) else f"{ord(value)} : ui8"


def _order(aval: ShapedArray, rank: int) -> tuple[int, ...]:
    order = row_major(aval.ndim)
    return (order[1], order[0], *order[2:]) if aval.ndim == rank >= 2 else order


def status(batch: tuple[int, ...]) -> ShapedArray:
    """The type of LAPACK's ``info`` result: for each matrix 0, or an error number."""
    return shaped(batch, dtypes.int32)


def nan_unless(f: Function, ok: Value, x: Value) -> Value:
    """`x` with nan in the matrices (or vectors) of the stack for which `ok` is false."""
    wanted = f.broadcast(ok, x.aval.shape, range(ok.aval.ndim))
    nan = complex("nan+nanj") if dtypes.kind(x.aval.dtype) == "c" else float("nan")
    return f.select(wanted, x, f.constant(nan, x.aval))


def succeeded(f: Function, info: Value, direction: str = "EQ") -> Value:
    """Whether ``info`` is 0, for each matrix; with direction GE also where it is positive: the matrix was singular."""
    return f.compare(direction, info, f.constant(0, info.aval))
