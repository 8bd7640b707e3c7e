"""LAPACK, whose routines jaxlib offers as foreign functions.

They come from SciPy's own LAPACK, which is loaded when the first program that calls one is written, and not before.
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
    """Makes LAPACK known to the runtime if one of these foreign functions belongs to it."""
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
    """Writes the call of a routine, ``potrf`` for example, on stacks of matrices and vectors.

    The letter of the element type is put in front of its name. Attributes are truth values, 32 bit integers, or
    letters. Arrays with as many axes as the first that has most are matrices: Fortran's order is theirs.
    """
    return _call(f, f"lapack_{letter(operands[0].aval)}{routine}_ffi", operands, outs, aliases, attributes)


def perturbed_tridiagonal_solve(f: Function, operands: Sequence[Value]) -> Value:
    """Writes the solution of tridiagonal systems, with small pivots pushed away from zero: jaxlib's own routine."""
    letter(operands[0].aval)
    return _call(f, "tridiagonal_solve_perturbed_ffi", operands, [operands[-1].aval], None, {})[0]


def has_routines(aval: ShapedArray) -> bool:
    """Whether LAPACK computes with this element type."""
    return aval.dtype.name in _LETTERS


def letter(aval: ShapedArray) -> str:
    """LAPACK's letter for an element type. Raises `UnsupportedError` for those that it has no routines for."""
    found = _LETTERS.get(aval.dtype.name)
    if found is None:
        raise UnsupportedError(
            f"linear algebra of {aval.short}: Unsupported dtype {aval.dtype.name}; "
            f"there are routines for {', '.join(_LETTERS)}",
            instead="x.astype('float32')",
        )
    return found


def symmetric(aval: ShapedArray) -> str:
    """How names of routines for symmetric matrices begin; for complex elements they are Hermitian."""
    return "he" if dtypes.kind(aval.dtype) == "c" else "sy"


def orthogonal(aval: ShapedArray) -> str:
    """How names of routines for orthogonal matrices begin; for complex elements they are unitary."""
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
    """The type of what routines report: for each matrix 0, or what went wrong."""
    return shaped(batch, dtypes.int32)


def nan_unless(f: Function, ok: Value, x: Value) -> Value:
    """`x` with those matrices (or vectors) of the stack made nan where the routine failed."""
    wanted = f.broadcast(ok, x.aval.shape, range(ok.aval.ndim))
    nan = complex("nan+nanj") if dtypes.kind(x.aval.dtype) == "c" else float("nan")
    return f.select(wanted, x, f.constant(nan, x.aval))


def succeeded(f: Function, info: Value, direction: str = "EQ") -> Value:
    """Where the report of a routine is 0; with direction GE also where the matrix was merely singular."""
    return f.compare(direction, info, f.constant(0, info.aval))
