"""Custom calls of LAPACK routines, which jaxlib takes from SciPy's LAPACK.

Two extension modules of SciPy are loaded when the first program that calls a routine is lowered, as few programs need
them.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .._base.errors import UnsupportedError
from .._ir import dtypes
from .._ir.avals import ShapedArray
from .matrix_calls import Attribute, matrix_call
from .platforms import platform_of
from .text import Function, Value

#: LAPACK's letter for each element type that it has routines for
LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


def load_for(targets: Iterable[str]) -> None:
    """Registers LAPACK's routines with the runtime if one of these custom call targets is among them."""
    if any(name.startswith(("lapack_", "tridiagonal_solve_perturbed")) for name in targets):
        _load()


@functools.cache
def _load() -> None:
    from jaxlib.cpu import _lapack

    from .targets import register_ffi_target, register_ffi_target_as_batch_partitionable

    # Without `initialize` the handlers have no routines to call, and the process would crash.
    with _extension_modules_of_scipy():
        _lapack.initialize()
    for name, handler in _lapack.registrations().items():
        # Only names with this ending are handlers of XLA's typed FFI, version 1. Others have the older interface, 0.
        register_ffi_target(name, handler, api_version=int(name.endswith("_ffi")))
        if name.endswith("_ffi"):
            # Calls on stacks of matrices may be split over devices along the axes of the stack.
            register_ffi_target_as_batch_partitionable(name)


@contextlib.contextmanager
def _extension_modules_of_scipy() -> Iterator[None]:
    """Within it, the modules from which `initialize` takes the addresses of the routines are imported already.

    By themselves they load in 10 ms. Imported by their names they would bring all of ``scipy.linalg``, in 140 ms, which
    the first result of a program with linear algebra would wait for.
    """
    import scipy

    names = [] if "scipy.linalg" in sys.modules else ["scipy.linalg.cython_blas", "scipy.linalg.cython_lapack"]
    try:
        for name in names:
            spec = importlib.machinery.PathFinder.find_spec(name, [f"{folder}/linalg" for folder in scipy.__path__])
            if spec is not None and spec.loader is not None:  # else `initialize` looks for it
                sys.modules[name] = module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
        yield
    finally:
        for name in names:  # as nobody has imported ``scipy.linalg``, whose attributes they are
            sys.modules.pop(name, None)


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
    target = f"lapack_{LETTERS[operands[0].aval.dtype.name]}{routine}_ffi"
    _need_cpu(f, routine)
    _load()
    return matrix_call(f, target, operands, outs, aliases=aliases, attributes=attributes)


def perturbed_tridiagonal_solve(f: Function, operands: Sequence[Value]) -> Value:
    """Adds the call of jaxlib's own solver of tridiagonal systems, which moves small pivots away from zero."""
    _need_cpu(f, "tridiagonal_solve")
    _load()
    outs = [operands[-1].aval]
    return matrix_call(f, "tridiagonal_solve_perturbed_ffi", operands, outs, aliases=None, attributes={})[0]


def _need_cpu(f: Function, routine: str) -> None:
    platform = platform_of(f)
    if platform != "cpu":
        raise UnsupportedError(
            f"linear algebra: the routine {routine} is there for CPUs only, and the program is compiled for {platform}",
            instead="phlox.device_put(x, phlox.devices('cpu')[0])",
            platform=platform,
        )


def symmetric(aval: ShapedArray) -> str:
    """The prefix of routines for symmetric matrices, or for Hermitian ones if the elements are complex."""
    return "he" if dtypes.kind(aval.dtype) == "c" else "sy"


def orthogonal(aval: ShapedArray) -> str:
    """The prefix of routines for orthogonal matrices, or for unitary ones if the elements are complex."""
    return "un" if dtypes.kind(aval.dtype) == "c" else "or"
