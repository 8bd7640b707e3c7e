"""Matrices of a particular form: Toeplitz, Hankel and circulant ones, companions, Hilbert's, Pascal's and others."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import DtypeError, OptionError, ShapeError
from ..._ir import dtypes
from ..._operands.checks import check, check_one, integer, type_of
from ..._operands.promotion import promote_dtypes, promote_inexact, to_dtype
from ...typing import Array, ArrayLike, DTypeLike


def _vectors(function: str, *arrays: Any) -> list[Array]:
    """The operands as stacks of vectors: scalars become vectors of one element."""
    return [jnp.atleast_1d(x) for x in check(function, *arrays)]


@jit
def block_diag(*arrs: ArrayLike) -> Array:
    """Block diagonal matrices with the given matrices as blocks (as ``scipy.linalg.block_diag``).

    Args:
      *arrs: blocks: matrices, of shapes [..., m, n]; a vector is treated as a single row, a number as a 1 × 1 matrix.
        Stacks are broadcast.

    Returns:
      Matrices of the promoted dtype, whose numbers of rows and columns are the sums of those of the blocks; of shape
      [1, 0] if there are no blocks.

    Raises:
      ShapeError: the stacks do not broadcast.

    >>> block_diag(jnp.array([[1, 2]]), 3)
    Array([[1, 2, 0],
           [0, 0, 3]], dtype=int32)
    """
    if not arrs:
        # SciPy's result for no blocks
        return jnp.zeros((1, 0))
    blocks = promote_dtypes(*check("block_diag", *arrs))
    blocks = [jnp.atleast_2d(to_dtype(x, type_of(x).dtype)) for x in blocks]
    shapes = [type_of(x).shape for x in blocks]
    stack = jnp.broadcast_shapes(*[shape[:-2] for shape in shapes])
    width, before, rows = sum(shape[-1] for shape in shapes), 0, []
    for x, shape in zip(blocks, shapes, strict=True):
        columns = shape[-1]
        x = jnp.broadcast_to(x, (*stack, *shape[-2:]))
        rows.append(jnp.pad(x, (*((0, 0),) * len(stack), (0, 0), (before, width - columns - before))))
        before += columns
    return jnp.concatenate(rows, axis=-2)


def _along_diagonals(x: Any, rows: int, columns: int) -> Any:
    """The Hankel matrices with elements ``x[..., i + j]``."""
    return x[..., jnp.arange(rows)[:, None] + jnp.arange(columns)]


@jit(inline=True)
def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Matrices whose diagonals are constant: first column `c`, first row `r` (as ``scipy.linalg.toeplitz``).

    Args:
      c: vectors of length m, of shape [..., m].
      r: vectors of length n, the conjugate of `c` by default; their first element is not read.

    Returns:
      Matrices of shape [..., m, n], of the promoted dtype.

    >>> toeplitz(jnp.array([1, 2]), jnp.array([1, 5, 6]))
    Array([[1, 5, 6],
           [2, 1, 5]], dtype=int32)
    """
    c = check_one("toeplitz", c)
    c, r = (to_dtype(x, type_of(x).dtype) for x in _vectors("toeplitz", c, jnp.conj(c) if r is None else r))
    return _toeplitz(c, r)


@functools.partial(jnp.vectorize, signature="(m),(n)->(m,n)")
def _toeplitz(c: Any, r: Any) -> Any:
    m, n = type_of(c).shape[0], type_of(r).shape[0]
    # A Toeplitz matrix is a Hankel matrix with its rows in reverse.
    return _along_diagonals(jnp.concatenate([c[::-1], r[1:]]), m, n)[::-1]


@jit(inline=True)
@docs_from(toeplitz)
def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Matrices whose antidiagonals are constant: first column `c`, last row `r` (as ``scipy.linalg.hankel``).

    Args:
      r: vectors of length n, zeros of the length of `c` by default; their first element is not read.

    Raises:
      ShapeError: an argument has no axis.

    >>> hankel(jnp.array([1, 2]), jnp.array([2, 5, 6]))
    Array([[1, 2, 5],
           [2, 5, 6]], dtype=int32)
    """
    c = check_one("hankel", c)
    r = check_one("hankel", jnp.zeros_like(c) if r is None else r)
    if any(type_of(x).ndim == 0 for x in (c, r)):
        raise ShapeError("hankel: takes vectors, got a number")
    return _hankel(c, r)


@functools.partial(jnp.vectorize, signature="(m),(n)->(m,n)")
def _hankel(c: Any, r: Any) -> Any:
    return _along_diagonals(jnp.concatenate([c, r[1:]]), type_of(c).shape[0], type_of(r).shape[0])


@jit(inline=True)
def circulant(c: ArrayLike) -> Array:
    """Matrices with first column `c`, each further column the previous one rotated (as ``scipy.linalg.circulant``).

    Args:
      c: vectors of length n, of shape [..., n].

    Returns:
      Matrices of shape [..., n, n], of the dtype of `c`.

    >>> circulant(jnp.array([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]], dtype=int32)
    """
    (c,) = _vectors("circulant", c)
    n = type_of(c).shape[-1]
    return c[..., (np.arange(n)[:, None] - np.arange(n)) % max(n, 1)]


@jit(inline=True)
def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Leslie matrices of populations (as ``scipy.linalg.leslie``): `f` in the first row, `s` below the diagonal.

    Args:
      f: fecundities, vectors of length n >= 2.
      s: survival rates, vectors of length n - 1.

    Returns:
      Matrices of shape [..., n, n], of the promoted dtype.

    Raises:
      ShapeError: the lengths do not fit.

    >>> leslie(jnp.array([1.0, 2.0]), jnp.array([0.5]))
    Array([[1. , 2. ],
           [0.5, 0. ]], dtype=float32)
    """
    f, s = _vectors("leslie", f, s)
    n = type_of(f).shape[-1]
    if n < 2 or type_of(s).shape[-1] != n - 1:
        raise ShapeError(
            "leslie: the length of f along the last axis must be at least 2, that of s one less, "
            f"got {type_of(f).short} and {type_of(s).short}"
        )
    return jnp.vectorize(lambda f, s: jnp.diag(s, k=-1).at[0].set(f), signature="(n),(m)->(n,n)")(*promote_dtypes(f, s))


@jit(inline=True)
def companion(a: ArrayLike) -> Array:
    """Companion matrices, whose eigenvalues are the roots of polynomials (as ``scipy.linalg.companion``).

    Args:
      a: coefficients, the highest power first: vectors of length n >= 2, whose first element is not 0.

    Returns:
      Matrices of shape [..., n - 1, n - 1], of the inexact dtype of `a`.

    Raises:
      ShapeError: `a` has less than two coefficients.

    >>> companion(jnp.array([1.0, -3.0, 2.0]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    (a,) = promote_inexact(*_vectors("companion", a))
    n = type_of(a).shape[-1]
    if n < 2:
        raise ShapeError(f"companion: the length of `a` along the last axis must be at least 2, got {type_of(a).short}")
    below = jnp.broadcast_to(jnp.eye(n - 1, k=-1, dtype=a.dtype), (*type_of(a).shape[:-1], n - 1, n - 1))
    return below.at[..., 0, :].set(-a[..., 1:] / a[..., :1])


@jit(inline=True)
def fiedler(a: ArrayLike) -> Array:
    """The absolute differences of all pairs of elements (as ``scipy.linalg.fiedler``).

    Args:
      a: vectors of length n, of shape [..., n].

    Returns:
      Symmetric matrices of shape [..., n, n], of the dtype of `a` (real for complex numbers).

    >>> fiedler(jnp.array([1, 4]))
    Array([[0, 3],
           [3, 0]], dtype=int32)
    """
    (a,) = _vectors("fiedler", a)
    return jnp.abs(a[..., None] - a[..., None, :])


@jit(inline=True)
def fiedler_companion(a: ArrayLike) -> Array:
    """Fiedler's companion matrices, of five diagonals (as ``scipy.linalg.fiedler_companion``).

    Their eigenvalues are those of `companion`.

    Args:
      a: coefficients, the highest power first: vectors of length n >= 1, whose first element is not 0.

    Returns:
      Matrices of shape [..., n - 1, n - 1], of the inexact dtype of `a`.

    Raises:
      ShapeError: `a` has no coefficient.

    >>> fiedler_companion(jnp.array([1.0, -3.0, 2.0]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    (a,) = promote_inexact(*_vectors("fiedler_companion", a))
    n = type_of(a).shape[-1] - 1
    if n < 0:
        raise ShapeError("fiedler_companion: the length of `a` along the last axis must be nonzero")
    stack = type_of(a).shape[:-1]
    out = jnp.zeros((*stack, n, n), a.dtype)
    if n == 0:
        return out
    a = a / a[..., :1]
    out = out.at[..., 0, 0].set(-a[..., 1])
    if n == 1:
        return out
    out = out.at[..., 1, 0].set(1)
    rows = np.arange(0, n, 2)
    right, left = rows[rows + 1 < n], rows[rows >= 2]
    out = out.at[..., right, right + 1].set(-a[..., right + 2])
    out = out.at[..., left, left - 1].set(-a[..., left + 1])
    far = rows[rows + 2 < n]
    out = out.at[..., far, far + 2].set(1)
    odd = np.arange(3, n, 2)
    return out.at[..., odd, odd - 2].set(1)


@functools.partial(jit, static_argnames=("n", "mode"))
def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """Matrices whose products with a vector of `n` elements are convolutions with `a`
    (as ``scipy.linalg.convolution_matrix``).

    Args:
      a: vectors of length m >= 1, of shape [..., m].
      n: length of the vector that is convolved.
      mode: 'full', 'same' or 'valid', as in `phlox.numpy.convolve`.

    Returns:
      Matrices of shape [..., rows, n], of the dtype of `a`; rows are m + n - 1 for 'full', max(m, n) for 'same', and
      max(m, n) - min(m, n) + 1 for 'valid'.

    Raises:
      OptionError: `n` is not positive, or `mode` is unknown.
      ShapeError: `a` has no element along the last axis.

    >>> convolution_matrix(jnp.array([1, 2]), 2)
    Array([[1, 0],
           [2, 1],
           [0, 2]], dtype=int32)
    """
    n = integer("convolution_matrix", "n", n)
    a = check_one("convolution_matrix", a)
    if n <= 0:
        raise OptionError(f"convolution_matrix: n must be a positive integer, got {n}")
    if type_of(a).ndim == 0 or type_of(a).shape[-1] < 1:
        raise ShapeError(f"convolution_matrix: takes vectors with one element at least, got {type_of(a).short}")
    if mode not in ("full", "valid", "same"):
        raise OptionError(f"convolution_matrix: there is no mode {mode!r}", instead="'full', 'same' or 'valid'")
    m = type_of(a).shape[-1]
    total = m + n - 1
    # "same" keeps the middle rows, as `numpy.convolve` does: of an odd number of removed rows one more is at the end.
    cut = 0 if mode == "full" else min(n, m) - 1
    first, last = (cut // 2, cut - cut // 2) if mode == "same" else (cut, cut)
    wide = [(0, 0)] * (type_of(a).ndim - 1) + [(n - 1, n - 1)]
    padded = jnp.pad(a, wide)
    rows = np.arange(first, total - last)
    return padded[..., rows[:, None] - np.arange(n) + n - 1]


# --- matrices that depend on their size alone, made on the host -----------------------------------------


def _matrix_of(function: str, n: Any, elements: Callable[[Any, Any], Any]) -> Any:
    """The square matrix of a function of arrays of row and column numbers, in the default dtype."""
    size = integer(function, "n", n)
    table = elements(*np.ogrid[:size, :size])
    return jnp.asarray(table.astype(np.float64), dtypes.canonical(np.dtype(np.float64)))


def _matrix_of_integers(function: str, n: Any, element: Callable[[int, int], int]) -> Any:
    """The square matrix of a function of Python integers, in the default dtype."""
    # Products of binomial coefficients exceed 64 bits, and floats would round them.
    return _matrix_of(function, n, np.frompyfunc(element, 2, 1))


@functools.partial(jit, inline=True, static_argnames="n")
def hilbert(n: int) -> Array:
    """Hilbert's matrix, ``1 / (i + j + 1)`` (as ``scipy.linalg.hilbert``).

    Args:
      n: number of rows and of columns.

    Returns:
      A matrix of shape [n, n], float32 (float64 in x64 mode).

    >>> hilbert(2)[0]
    Array([1. , 0.5], dtype=float32)
    """
    return _matrix_of("hilbert", n, lambda i, j: 1 / (i + j + 1))


@functools.partial(jit, inline=True, static_argnames="n")
@docs_from(hilbert)
def invhilbert(n: int) -> Array:
    """The inverse of Hilbert's matrix (as ``scipy.linalg.invhilbert``), whose elements are integers.

    Returns:
      A matrix of shape [n, n], float32 (float64 in x64 mode); large elements are rounded.

    >>> invhilbert(2)
    Array([[ 4., -6.],
           [-6., 12.]], dtype=float32)
    """
    comb = math.comb

    def element(i: int, j: int) -> int:
        return (-1) ** (i + j) * (i + j + 1) * comb(n + i, n - j - 1) * comb(n + j, n - i - 1) * comb(i + j, i) ** 2

    return _matrix_of_integers("invhilbert", n, element)


def _kind(function: str, kind: str | None) -> str:
    if kind not in (None, "symmetric", "lower", "upper"):
        raise OptionError(f"{function}: Expected kind to be one of 'symmetric', 'lower' and 'upper', got {kind!r}")
    return kind or "symmetric"


@functools.partial(jit, inline=True, static_argnames=("n", "kind"))
def pascal(n: int, kind: str | None = None) -> Array:
    """Pascal's triangle as a matrix (as ``scipy.linalg.pascal``).

    Args:
      n: number of rows and of columns.
      kind: 'lower' or 'upper' triangle, or 'symmetric' (None), the product of the two.

    Returns:
      A matrix of shape [n, n], float32.

    Raises:
      OptionError: `kind` is unknown.

    >>> pascal(3)
    Array([[1., 1., 1.],
           [1., 2., 3.],
           [1., 3., 6.]], dtype=float32)
    """
    elements = {
        "symmetric": lambda i, j: math.comb(i + j, i),
        "lower": math.comb,
        "upper": lambda i, j: math.comb(j, i),
    }
    # float32 in 64-bit mode too, as in JAX
    return _matrix_of_integers("pascal", n, elements[_kind("pascal", kind)]).astype(np.float32)


@functools.partial(jit, inline=True, static_argnames=("n", "kind"))
@docs_from(hilbert)
def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of `pascal` (as ``scipy.linalg.invpascal``).

    Args:
      kind: 'lower', 'upper' or 'symmetric' (None), as for `pascal`.

    Raises:
      OptionError: `kind` is unknown.

    >>> invpascal(2)
    Array([[ 2., -1.],
           [-1.,  1.]], dtype=float32)
    """

    def lower(i: int, j: int) -> int:
        return (-1) ** (i + j) * math.comb(i, j)

    elements = {
        "symmetric": lambda i, j: sum(lower(k, i) * lower(k, j) for k in range(n)),
        "lower": lower,
        "upper": lambda i, j: lower(j, i),
    }
    return _matrix_of_integers("invpascal", n, elements[_kind("invpascal", kind)])


@functools.partial(jit, inline=True, static_argnames=("n", "full"))
def helmert(n: int, full: bool = False) -> Array:
    """Helmert's matrix of orthonormal contrasts (as ``scipy.linalg.helmert``).

    Args:
      n: number of columns, positive.
      full: whether the row of the mean, 1 / sqrt(n), comes first.

    Returns:
      A matrix of shape [n - 1, n], with `full` [n, n], float32 (float64 in x64 mode).

    Raises:
      OptionError: `n` is not positive.

    >>> helmert(2).round(2)
    Array([[ 0.71, -0.71]], dtype=float32)
    """
    n = integer("helmert", "n", n)
    if n < 1:
        raise OptionError(f"helmert: n must be a positive integer, got {n}")

    def elements(i: Any, j: Any) -> Any:
        contrasts = np.where(j < i, 1, np.where(j == i, -i, 0)) / np.sqrt(np.maximum(i * (i + 1), 1))
        return np.where(i == 0, 1 / math.sqrt(n), contrasts)

    whole = _matrix_of("helmert", n, elements)
    return whole if full else whole[1:]


@functools.partial(jit, inline=True, static_argnames=("n", "dtype"))
def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Hadamard's matrix of orthogonal rows of 1 and -1 (as ``scipy.linalg.hadamard``).

    Args:
      n: number of rows and of columns, a power of 2.
      dtype: dtype of the result; int32 by default (int64 in x64 mode).

    Returns:
      A matrix of shape [n, n] and this dtype.

    Raises:
      OptionError: `n` is not a power of 2.

    >>> hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]], dtype=int32)
    """
    n = integer("hadamard", "n", n)
    if n < 1 or n & (n - 1):
        raise OptionError(f"hadamard: n must be a positive power of 2, got {n}")
    # Sylvester's construction
    table = np.ones((1, 1))
    while len(table) < n:
        table = np.block([[table, table], [table, -table]])
    return jnp.asarray(table, dtypes.user_dtype(dtype, "hadamard"))


@functools.partial(jit, inline=True, static_argnames=("n", "scale", "dtype"))
def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """The matrix of the discrete Fourier transform (as ``scipy.linalg.dft``).

    Args:
      n: number of rows and of columns.
      scale: 'sqrtn' divides by sqrt(n), which makes it unitary; 'n' divides by `n`; None leaves it unscaled.
      dtype: a complex dtype; complex64 by default (complex128 in x64 mode).

    Returns:
      A matrix of shape [n, n] and this dtype.

    Raises:
      OptionError: `scale` is unknown.
      DtypeError: `dtype` is not complex.

    >>> dft(2).real
    Array([[ 1.,  1.],
           [ 1., -1.]], dtype=float32)
    """
    n = integer("dft", "n", n)
    if scale not in (None, "sqrtn", "n"):
        raise OptionError(f"dft: scale must be None, 'sqrtn' or 'n', got {scale!r}")
    target = dtypes.canonical(np.dtype(np.complex128)) if dtype is None else dtypes.user_dtype(dtype, "dft")
    if dtypes.kind(target) != "c":
        raise DtypeError(f"dft: dtype must be one of complex numbers, got {target}")
    # Whole turns are removed before the multiplication by pi, which would round large angles.
    turns = np.outer(np.arange(n), np.arange(n)) % max(n, 1) / max(n, 1)
    divisor = {None: 1.0, "sqrtn": math.sqrt(n), "n": n}[scale]
    return jnp.asarray(np.exp(-2j * np.pi * turns) / divisor, target)
