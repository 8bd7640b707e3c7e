"""Functions of matrices: expm, sqrtm, funm, Schur forms, polar decomposition, Sylvester's equation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ... import lax, numpy as jnp
from ..._api.derivatives.custom import custom_jvp
from ..._api.derivatives.differentiate import jvp
from ..._api.jit.jit import jit
from ..._base.errors import DtypeError, OptionError, ShapeError, UnsupportedError
from ..._ir import dtypes
from ..._operands.checks import check, check_square, type_of
from ..._operands.promotion import promote_inexact
from ..._ops.linalg.matrices import adjoint, product
from ...lax._polar import qdwh
from ...numpy._creation.from_data import listed
from ...numpy._linalg.polar import factors_by_svd, polar_factors
from ...typing import Array, ArrayLike
from ._factors import schur
from ._systems import solve_triangular

# --- the exponential ------------------------------------------------------------------------------------

#: coefficients of Padé approximations of the exponential near zero, by degree
_PADE = {
    3: (120.0, 60.0, 12.0, 1.0),
    5: (30240.0, 15120.0, 3360.0, 420.0, 30.0, 1.0),
    7: (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0),
    9: (17643225600.0, 8821612800.0, 2075673600.0, 302702400.0, 30270240.0, 2162160.0, 110880.0, 3960.0, 90.0, 1.0),
    13: (
        64764752532480000.0,
        32382376266240000.0,
        7771770303897600.0,
        1187353796428800.0,
        129060195264000.0,
        10559470521600.0,
        670442572800.0,
        33522128640.0,
        1323241920.0,
        40840800.0,
        960960.0,
        16380.0,
        182.0,
        1.0,
    ),
}

# N. J. Higham 2005, The scaling and squaring method for the matrix exponential revisited
#: degrees, and the largest norm for which each is accurate, except the last, which is used up to `most`
_SCHEDULE = {
    "float32": ((3, 5, 7), (4.258730016922831e-01, 1.880152677804762e00), 3.925724783138660),
    "float64": (
        (3, 5, 7, 9, 13),
        (1.495585217958292e-02, 2.539398330063230e-01, 9.504178996162932e-01, 2.097847961257068e00),
        5.371920351148152,
    ),
}


def _pade(degree: int, a: Any) -> tuple[Any, Any]:
    """The odd and the even part of the numerator; the denominator has the odd part with opposite sign."""
    c = _PADE[degree]
    one = jnp.eye(type_of(a).shape[0], dtype=a.dtype)
    square = product(a, a)
    powers = [one, square]
    for _ in range(degree // 2 - 1 if degree < 13 else 2):
        powers.append(product(powers[-1], square))

    def poly(coefficients: Sequence[float]) -> Any:
        total = coefficients[0] * powers[0]
        for value, power in zip(coefficients[1:], powers[1:], strict=False):
            total = total + value * power
        return total

    if degree < 13:
        return product(a, poly(c[1::2])), poly(c[0::2])
    high = len(powers) - 1  # the sixth power of `a` is factored out of the terms with higher coefficients
    odd, even = c[1::2], c[0::2]
    upper = [product(powers[high], poly((0.0, *x[high + 1 :]))) for x in (odd, even)]
    return product(a, upper[0] + poly(odd[: high + 1])), upper[1] + poly(even[: high + 1])


@functools.partial(jit, static_argnames=("upper_triangular", "max_squarings"))
def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponentials of square matrices (as ``scipy.linalg.expm``), by Padé approximation, scaling and squaring.

    Args:
      A: square matrices, of shape [..., n, n]; integers are converted to floats.
      upper_triangular: whether the matrices are known to be upper triangular, which makes the computation cheaper.
      max_squarings: largest number of squarings; matrices whose norm requires more give nan.

    Returns:
      Matrices of the shape and inexact dtype of `A`.

    Raises:
      ShapeError: the matrices are not square.
      DtypeError: the precision is neither single nor double.

    >>> expm(jnp.array([[0.0, 1.0], [0.0, 0.0]]))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    (a,) = promote_inexact(*check("expm", A))
    check_square("expm", a)
    of_one = functools.partial(_expm, upper_triangular=upper_triangular, max_squarings=max_squarings)
    return jnp.vectorize(of_one, signature="(n,n)->(n,n)")(a)


def _expm(a: Any, upper_triangular: bool, max_squarings: int) -> Any:
    size = jnp.linalg.norm(a, 1)
    real = size.dtype
    if real.name not in _SCHEDULE:
        raise DtypeError(f"expm: takes single or double precision, got {type_of(a).short}")
    degrees, bounds, most = _SCHEDULE[real.name]
    # Rounded down, as in JAX: the scaled norm may be up to twice `most`.
    squarings = jnp.maximum(0, jnp.floor(jnp.log2(size / most)))
    a = a / (2**squarings).astype(a.dtype)
    which = jnp.digitize(size, jnp.array(bounds, real))
    odd, even = lax.switch(which, [functools.partial(_pade, degree) for degree in degrees], a)

    def computed(odd: Any, even: Any) -> Any:
        numerator, denominator = even + odd, even - odd
        solve = solve_triangular if upper_triangular else jnp.linalg.solve
        out = solve(denominator, numerator)

        def again(i: Any, x: Any) -> Any:
            return lax.cond(i < squarings, lambda x: product(x, x), lambda x: x, x)

        # With known bounds this is a scan, whose reverse mode computes no step again.
        return lax.fori_loop(0, max_squarings, again, out)

    return lax.cond(squarings > max_squarings, lambda odd, even: jnp.full_like(odd, jnp.nan), computed, odd, even)


@functools.partial(jit, static_argnames=("method", "compute_expm"))
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True
) -> Array | tuple[Array, Array]:
    """The matrix exponential of `A` and its derivative in the direction `E` (as ``scipy.linalg.expm_frechet``).

    Args:
      A, E: square matrices, of one shape [..., n, n] and one inexact dtype.
      method: without effect.
      compute_expm: whether to return ``expm(A)`` too.

    Returns:
      ``(expm(A), derivative)``, each of the shape and dtype of `A`; or the derivative alone.

    Raises:
      ShapeError: `A` and `E` are not square matrices of one shape.
      DtypeError: the dtypes differ, or the precision is neither single nor double.

    >>> expm_frechet(jnp.zeros((1, 1)), jnp.ones((1, 1)), compute_expm=False)
    Array([[1.]], dtype=float32)
    """
    a, e = map(jnp.asarray, listed("expm_frechet", A, E))
    check_square("expm_frechet", a)
    check_square("expm_frechet", e)
    if type_of(a).shape != type_of(e).shape:
        raise ShapeError(f"expm_frechet: {type_of(a).short} and {type_of(e).short} differ in shape")
    out, tangent = jvp(expm, (a,), (e,))
    return (out, tangent) if compute_expm else tangent


# --- by way of the Schur form ---------------------------------------------------------------------------


def _triangle_root(t: Any) -> Any:
    """The square root of an upper triangular matrix, by columns, each from the diagonal upwards."""
    diagonal = jnp.sqrt(jnp.diag(t))

    def element(step: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        j, u = state
        i = j - 1 - step
        rest = t[i, j] - u[i] @ u[:, j]  # elements that are not computed yet are zero
        # 0 / 0 where two eigenvalues are 0
        return j, u.at[i, j].set(jnp.where(rest == 0, 0.0, rest / (diagonal[i] + diagonal[j])))

    def column(j: Any, u: Any) -> Any:
        return lax.fori_loop(0, j, element, (j, u))[1]

    n = type_of(t).shape[0]
    return lax.fori_loop(0, n, column, jnp.diag(diagonal)) if n else t


@custom_jvp
def _root(a: Any) -> Any:
    # Å. Björck and S. Hammarling 1983, A Schur method for the square root of a matrix
    t, z = schur(a, output="complex")
    return product(z, _triangle_root(t), adjoint(z))


@_root.defjvp
def _root_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    """X X = A gives X dX + dX X = dA."""
    (a,), (da,) = primals, tangents
    x = _root(a)
    return x, _sylvester(x, x, da.astype(x.dtype), _by_schur)


_sqrtm = jit(jnp.vectorize(_root, signature="(n,n)->(n,n)"))


def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """The square roots of square matrices (as ``scipy.linalg.sqrtm``).

    Args:
      A: matrices of shape [..., n, n].
      blocksize: must be 1; blocked algorithms are not supported.

    Returns:
      Matrices of the shape of `A`, of a complex dtype also for real matrices.

    Raises:
      UnsupportedError: `blocksize` is above 1.
      ShapeError: the matrices are not square.

    >>> sqrtm(jnp.array([[4.0, 0.0], [0.0, 9.0]])).real
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    if blocksize > 1:
        raise UnsupportedError(f"sqrtm: blocksize={blocksize} is not there", instead="blocksize=1")
    (a,) = check("sqrtm", A)
    check_square("sqrtm", a)
    return _sqrtm(a)


@functools.partial(jit, static_argnames=("check_finite",))
def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The complex Schur form of a real one, which is an upper triangle (as ``scipy.linalg.rsf2csf``).

    Args:
      T, Z: real Schur form and Schur vectors, square matrices [..., n, n], as `schur` returns them.
      check_finite: accepted as in SciPy, without effect.

    Returns:
      The pair of T and Z, of the same shapes, complex.

    Raises:
      ShapeError: `T` and `Z` are not square matrices of one size.

    >>> t, z = rsf2csf(*schur(jnp.array([[0.0, -1.0], [1.0, 0.0]])))
    >>> abs(t[1, 0])
    Array(0., dtype=float32)
    """
    t, z = listed("rsf2csf", T, Z)
    check_square("rsf2csf", t)
    check_square("rsf2csf", z)
    if type_of(t).shape[-1] != type_of(z).shape[-1]:
        raise ShapeError(f"rsf2csf: {type_of(t).short} and {type_of(z).short} do not fit")
    return jnp.vectorize(_rsf2csf, signature="(n,n),(n,n)->(n,n),(n,n)")(t, z)


def _rsf2csf(t: Any, z: Any) -> tuple[Any, Any]:
    dtype = dtypes.to_complex(dtypes.to_inexact(jnp.promote_types(t.dtype, z.dtype)))
    t, z = t.astype(dtype), z.astype(dtype)
    n = type_of(t).shape[0]
    eps = dtypes.finfo(dtype).eps

    def rotate(m: Any, t: Any, z: Any) -> tuple[Any, Any]:
        """Makes ``t[m, m - 1]`` zero by a rotation of two adjacent rows and columns."""
        # (mu[0], below) is an eigenvector of the block of two rows; the rotation turns it to the first axis.
        mu = jnp.linalg.eigvals(lax.dynamic_slice(t, (m - 1, m - 1), (2, 2))) - t[m, m]
        below = t[m, m - 1]
        r = jnp.linalg.norm(jnp.stack([mu[0], below])).astype(dtype)
        c, s = mu[0] / r, below / r
        g = jnp.stack([jnp.stack([c.conj(), s]), jnp.stack([-s, c])])
        rows = lax.dynamic_slice_in_dim(t, m - 1, 2, axis=0)
        rows = jnp.where(jnp.arange(n) >= m - 1, product(g, rows), rows)
        t = lax.dynamic_update_slice_in_dim(t, rows, m - 1, axis=0)
        columns = lax.dynamic_slice_in_dim(t, m - 1, 2, axis=1)
        columns = jnp.where(jnp.arange(n)[:, None] < m + 1, product(columns, adjoint(g)), columns)
        t = lax.dynamic_update_slice_in_dim(t, columns, m - 1, axis=1)
        columns = product(lax.dynamic_slice_in_dim(z, m - 1, 2, axis=1), adjoint(g))
        return t, lax.dynamic_update_slice_in_dim(z, columns, m - 1, axis=1)

    def step(i: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        m = n - i
        t, z = state
        large = abs(t[m, m - 1]) > eps * (abs(t[m - 1, m - 1]) + abs(t[m, m]))
        t, z = lax.cond(large, rotate, lambda m, t, z: (t, z), m, t, z)
        return t.at[m, m - 1].set(0.0), z

    return (t, z) if n < 2 else lax.fori_loop(1, n, step, (t, z))


def funm(A: ArrayLike, func: Callable[[Any], Any], disp: bool = True) -> Array | tuple[Array, Array]:
    """A matrix function, defined by a function of scalars (as ``scipy.linalg.funm``); the result is complex.

    Args:
      A: matrices of shape [..., n, n], of floats or complex numbers, whose eigenvalues should be distinct.
      func: function that is applied to the vector of eigenvalues of each matrix, and returns a vector of the same
        length.
      disp: False returns an estimate of the relative error too.

    Returns:
      Complex matrices [..., n, n]; without `disp` the pair of them and the relative errors [...], real numbers.

    Raises:
      ShapeError: the matrices are not square.
      DtypeError: `A` are integers.

    >>> funm(jnp.array([[4.0, 0.0], [0.0, 9.0]]), jnp.sqrt).real
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    (a,) = map(jnp.asarray, check("funm", A))
    check_square("funm", a)
    out, error = jnp.vectorize(functools.partial(_funm, func=func), signature="(n,n)->(n,n),()")(a)
    return out if disp else (out, error)


def _funm(a: Any, func: Callable[[Any], Any]) -> tuple[Any, Any]:
    t, z = rsf2csf(*schur(a))
    f, smallest = _parlett(jnp.diag(func(jnp.diag(t))).astype(t.dtype), t)
    out = product(z, f, adjoint(z))
    eps = dtypes.finfo(out.dtype).eps
    # SciPy's estimate of the error, from the smallest distance of eigenvalues
    smallest = jnp.where(smallest == 0.0, eps, smallest)
    error = jnp.maximum(eps, (eps / smallest) * jnp.linalg.norm(jnp.triu(t, 1), 1))
    return out, jnp.where(jnp.any(jnp.isinf(out)), jnp.inf, jnp.minimum(1, error))


@jit
def _parlett(f: Any, t: Any) -> tuple[Any, Any]:
    """f(T) for upper triangular T, and the smallest difference of eigenvalues.

    By diagonals: f(T) T = T f(T) determines each element from earlier ones. See Golub and Van Loan, "Matrix
    Computations", algorithm 11.1.1.
    """
    n = type_of(t).shape[0]

    def element(i: Any, state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        p, f, smallest = state
        j = i + p
        between = (jnp.arange(n) > i) & (jnp.arange(n) < j)

        def keep(x: Any) -> Any:
            return jnp.where(between, x, 0)

        total = t[i, j] * (f[j, j] - f[i, i]) + keep(t[i]) @ keep(f[:, j]) - keep(f[i]) @ keep(t[:, j])
        apart = t[j, j] - t[i, i]
        # SciPy does not divide either where eigenvalues are equal.
        f = f.at[i, j].set(jnp.where(apart != 0, total / apart, total))
        return p, f, jnp.minimum(smallest, abs(apart))

    def diagonal(p: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        return lax.fori_loop(0, n - p, element, (p, *state))[1:]

    return lax.fori_loop(1, n, diagonal, (f, abs(t[0, 0])))


# --- polar, Sylvester -----------------------------------------------------------------------------------


@functools.partial(jit, static_argnames=("side", "method"))
def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """The polar decomposition ``a = U P`` with U unitary and P positive semidefinite (as ``scipy.linalg.polar``).

    Args:
      a: matrices, of shape [..., m, n], of floats or complex numbers.
      side: 'right'; or 'left', for ``a = P U``.
      method: 'qdwh' (see `phlox.lax.linalg.qdwh`), which needs m >= n for the right side and m < n for the left one; or
        'svd'.
      eps, max_iterations: without effect, as in JAX.

    Returns:
      ``(U, P)``: [..., m, n], and [..., n, n] (for the left side [..., m, m]), of the dtype of `a`.

    Raises:
      ShapeError: `a` has fewer than two axes.
      OptionError: `side` or `method` is unknown.
      UnsupportedError: 'qdwh' does not take this shape.
      DtypeError: there is no routine for the dtype (float16, bfloat16).

    >>> polar(jnp.array([[0.0, -2.0], [1.0, 0.0]]), method="svd")[1]
    Array([[1., 0.],
           [0., 2.]], dtype=float32)
    """
    (a,) = listed("polar", a)
    if type_of(a).ndim < 2:
        raise ShapeError(f"polar: takes matrices, got {type_of(a).short}", shapes=[type_of(a).shape])
    if side not in ("right", "left"):
        raise OptionError(f"polar: there is no side={side!r}", instead="'right' or 'left'")
    if method not in ("qdwh", "svd"):
        raise OptionError(f"polar: there is no method {method!r}", instead="'qdwh' or 'svd'")
    right = side == "right"
    m, n = type_of(a).shape[-2:]
    if m == 0 or n == 0:
        inner = n if right else m
        return jnp.zeros_like(a), jnp.zeros((*type_of(a).shape[:-2], inner, inner), type_of(a).dtype)
    if method == "qdwh" and right != (m >= n):
        raise UnsupportedError(
            f"polar: method='qdwh' of {type_of(a).short}",
            instead=f"side={'left' if right else 'right'!r}, or method='svd'",
        )
    u, p = polar_factors(a if m >= n else adjoint(a), _factors_by_qdwh if method == "qdwh" else factors_by_svd)
    if right != (m >= n):
        p = product(u, p, adjoint(u))  # a = u p = (u p uᴴ) u
    return (u if m >= n else adjoint(u)), p


@functools.partial(jnp.vectorize, signature="(m,n)->(m,n),(n,n)")
def _factors_by_qdwh(a: Any) -> tuple[Any, Any]:
    return qdwh(a)[:2]


@functools.partial(jit, static_argnames=("method",))
def solve_sylvester(A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8) -> Array:
    """The solution X of ``A X + X B = C`` (as ``scipy.linalg.solve_sylvester``).

    Args:
      A, B: square matrices, of shapes [..., m, m] and [..., n, n]; integers are converted to floats.
      C: matrices of shape [..., m, n].
      method: 'schur', or 'eigen', by eigenvectors.
      tol: X is nan where the sum of an eigenvalue of `A` and one of `B` is smaller than this in absolute value.

    Returns:
      Matrices of shape [..., m, n], of the promoted inexact dtype.

    Raises:
      ShapeError: the shapes are incompatible.
      OptionError: `method` is unknown.

    >>> solve_sylvester(jnp.array([[1.0]]), jnp.array([[3.0]]), jnp.array([[8.0]]))
    Array([[2.]], dtype=float32)
    """
    a, b, c = promote_inexact(*listed("solve_sylvester", A, B, C))
    if type_of(c).dtype.itemsize < 4:  # eigenvalues are float32 at least
        a, b, c = (x.astype(dtypes.float32) for x in (a, b, c))
    m, n = type_of(c).shape[-2:]
    if type_of(a).shape[-2:] != (m, m) or type_of(b).shape[-2:] != (n, n):
        raise ShapeError(
            f"solve_sylvester: {type_of(a).short}, {type_of(b).short} and {type_of(c).short} do not fit",
            shapes=[type_of(x).shape for x in (a, b, c)],
        )
    if method not in ("schur", "eigen"):
        raise OptionError(f"solve_sylvester: there is no method {method!r}", instead="'schur' or 'eigen'")
    kernel = functools.partial(_checked_sylvester, solver=_by_schur if method == "schur" else _by_eigenvectors, tol=tol)
    return jnp.vectorize(kernel, signature="(m,m),(n,n),(m,n)->(m,n)")(a, b, c)


def _checked_sylvester(a: Any, b: Any, c: Any, solver: Any, tol: Any) -> Any:
    # Where an eigenvalue of `a` is the opposite of one of `b` the equation is singular.
    sums = jnp.linalg.eigvals(lax.stop_gradient(a))[:, None] + jnp.linalg.eigvals(lax.stop_gradient(b))
    return jnp.where(jnp.any(abs(sums) < tol), jnp.nan, _sylvester(a, b, c, solver))


def _sylvester(a: Any, b: Any, c: Any, solver: Any) -> Any:
    """The X with ``a X + X b = c``, of the dtype of `c`. Derivatives are those of the equation."""
    fixed_a, fixed_b = lax.stop_gradient(a), lax.stop_gradient(b)

    def solution(a: Any, b: Any, c: Any) -> Any:
        x = solver(a, b, c)
        # The factors are complex also for real matrices, whose solution is real.
        return x if dtypes.kind(c.dtype) == "c" else x.real

    return lax.custom_linear_solve(
        lambda x: product(a, x) + product(x, b),
        c,
        solve=lambda _, c: solution(fixed_a, fixed_b, c),
        # The transposed equation is aᵀ X + X bᵀ = C.
        transpose_solve=lambda _, c: solution(fixed_a.T, fixed_b.T, c),
    )


def _by_eigenvectors(a: Any, b: Any, c: Any) -> Any:
    wa, va = jnp.linalg.eig(a)
    wb, vb = jnp.linalg.eig(b)
    inner = jnp.linalg.solve(va, product(c.astype(va.dtype), vb)) / (wa[:, None] + wb)
    return product(va, inner, jnp.linalg.inv(vb))


def _by_schur(a: Any, b: Any, c: Any) -> Any:
    """With A = U R Uᴴ and B = V Sᴴ Vᴴ, R and S triangular: R Y + Y Sᴴ = Uᴴ C V, solved from the last column of Y."""
    r, u = schur(a, output="complex")
    s, v = schur(adjoint(b), output="complex")
    f = product(adjoint(u), c.astype(r.dtype), v)
    back = adjoint(s)
    n = type_of(f).shape[1]
    one = jnp.eye(type_of(r).shape[0], dtype=r.dtype)

    def column(step: Any, y: Any) -> Any:
        j = n - 1 - step
        return y.at[:, j].set(solve_triangular(r + back[j, j] * one, f[:, j] - y @ back[:, j]))

    y = lax.fori_loop(0, n, column, jnp.zeros_like(f)) if type_of(f).size else f
    return product(u, y, adjoint(v))
