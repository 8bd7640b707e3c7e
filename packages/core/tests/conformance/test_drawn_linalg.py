"""Drawn calls of products, polynomials, linear algebra, Fourier transforms, and images."""

import numpy as np

from conformance.drawn import every, values
from conformance.harness import S, call

PRECISIONS = [None, "highest", "default"]


def product(kinds="biffc", types=True):
    """Two arrays whose inner lengths mostly agree, with batches and without."""

    def draw(d):
        n, m, k = (d.pick(1, 2, 3, 3, 0) for _ in range(3))
        batch = d.pick((), (), (2,), (1,), (0,))
        dtype = d.dtype(kinds)
        left = d.pick((n,), (m, n), (*batch, m, n), (2, 1, m, n))
        right = d.pick((n,), (n, k), (*batch, n, k), (k, n) if d.wrong() else (n, k))
        y = d.array(right, dtype=d.pick(dtype, dtype, dtype, d.dtype(kinds)))
        options = {"precision": PRECISIONS, "preferred_element_type": ["float32", "float64", "complex64"]}
        x = d.array((), dtype=dtype) if d.wrong() else d.array(left, dtype=dtype)
        return call(x, y, **(d.some(**options) if types else {}))

    return draw


def vectors(d, count=2, kinds="biffc"):
    shapes, dtype = d.shapes(count, 1), d.dtype(kinds)
    return [d.array(s, dtype=d.pick(dtype, dtype, d.dtype(kinds))) for s in shapes]


def vecdot(d):
    x, y = vectors(d)
    return call(x, y, **d.some(axis=[d.axis(min(len(x.shape), len(y.shape)))], precision=PRECISIONS))


def dot(d):
    x, y = vectors(d) if d.chance(0.5) else d.operands(2)
    return call(x, y)


def vdot(d):
    x = d.array()
    return call(x, d.array(d.pick(x.shape, x.shape[::-1], (3,))), **d.some(precision=PRECISIONS))


def matvec(first, second):
    def draw(d):
        sizes = {"n": d.pick(1, 2, 3, 0), "m": d.pick(1, 2, 3)}
        shape = lambda letters: tuple(sizes[c] if d.chance(0.97) else 4 for c in letters)
        batches = d.pick([(), ()], [(2,), ()], [(2,), (2,)], [(2, 1), (3,)])
        dtype = d.dtype("biffc")
        return call(
            d.array(batches[0] + shape(first), dtype=dtype),
            d.array(batches[1] + shape(second), dtype=d.pick(dtype, d.dtype())),
        )

    return draw


def tensordot(d):
    x, y = d.array(d.pick((2, 3), (3,), (2, 1, 3), (3, 2, 2))), d.array(d.pick((3, 2), (3,), (3, 1, 2), (2, 2, 3)))
    return call(
        x, y, axes=d.pick(0, 1, 2, ([1], [0]), ([-1], [0]), (0, 0), ((0, 1), (1, 0))), **d.some(precision=PRECISIONS)
    )


def einsum(d):
    n, m, k = (d.pick(1, 2, 3, 0) for _ in range(3))
    sizes = {"i": n, "j": m, "k": k, "b": 2}
    text = d.pick(
        "ij,jk->ik",
        "ij,jk",
        "ii",
        "ii->i",
        "bij,bjk->bik",
        "i,j->ij",
        "ij->ji",
        "ij->",
        "i,i",
        "ij,ij->i",
        "ij,jk,ki->",
        "...i,ij->...j",
        "b...,b...->...",
        "ij,kk->ij",
        ",i->i",
    )
    dtype = d.dtype("biffc")
    letters = lambda term: term.replace("...", d.pick("", "b"))
    xs = [
        d.array(tuple(sizes[c] for c in letters(term)), dtype=d.pick(dtype, dtype, d.dtype()))
        for term in text.split("->")[0].split(",")
    ]
    return call(
        text,
        *xs,
        **d.some(optimize=["optimal", False, True, "greedy"], precision=PRECISIONS, preferred_element_type=["float32"]),
    )


def inner(d):
    n = d.pick(1, 3, 0)
    return call(
        d.array(d.pick((n,), (2, n), ())),
        d.array(d.pick((n,), (3, n), (2, 2, n), (4,))),
        **d.some(precision=PRECISIONS),
    )


def cross(d):
    n = d.pick(3, 3, 2)
    shapes = [(n,), (2, n), (3, 2, n)]
    x = d.array(d.pick(*shapes))
    y = d.array(d.pick(*shapes, (4,) if d.wrong() else (3,)), dtype=d.pick(x.dtype, d.dtype("bf")))
    return call(x, y, **d.some(axis=[-1, 0], axisa=[-1], axisc=[0]))


def linalg_cross(d):
    x = d.array(d.pick((3,), (2, 3), (2,)))
    return call(x, d.array(d.pick((3,), (2, 3)), dtype=d.pick(x.dtype, d.dtype("bf"))), **d.some(axis=[-1, 0]))


def convolution(d):
    x, y = (
        d.array(d.pick((3,), (4,), (1,), (0,), (2, 2)) if d.chance(0.3) else d.pick((3,), (5,)), "biffc")
        for _ in range(2)
    )
    return call(
        x,
        y,
        **d.some(mode=["same", "full", "valid", "other"], precision=PRECISIONS, preferred_element_type=["float32"]),
    )


def polynomial(d):
    return d.array(d.pick((1,), (2,), (3,), (4,), (0,)), d.pick("i", "f", "f", "c"))


def polynomials(**more):
    return lambda d: call(polynomial(d), polynomial(d), **d.some(**more))


def polyval(d):
    return call(polynomial(d), d.pick(d.array(), d.number()), **d.some(unroll=[1, 4]))


def polyint(d):
    return call(polynomial(d), **d.some(m=[0, 1, 2, -1], k=[S(2), 1]))


def polyfit(d):
    n = d.pick(3, 4, 5)
    # Places that differ: of a singular system many solutions are as good. jax refuses integers, which NumPy takes.
    x = np.arange(n, dtype="float32")
    return call(x, d.array((n,), "iff", low=-2, high=3), d.pick(0, 1, 2), **d.some(full=[True]))


PRODUCTS = {
    "numpy.matmul": product(),
    "numpy.linalg.matmul": product(),
    "numpy.dot": dot,
    "numpy.vdot": vdot,
    **every("numpy", "vecdot", vecdot),
    **every("numpy.linalg", "vecdot", vecdot),
    "numpy.matvec": matvec("mn", "n"),
    "numpy.vecmat": matvec("m", "mn"),
    "numpy.inner": inner,
    "numpy.outer": lambda d: call(*d.operands(2)),
    "numpy.linalg.outer": lambda d: call(*d.operands(2) if d.chance(0.3) else [d.array((3,)), d.array((2,))]),
    "numpy.kron": lambda d: call(*d.operands(2)),
    **every("numpy", "tensordot", tensordot),
    **every("numpy.linalg", "tensordot", tensordot),
    "numpy.einsum": einsum,
    "numpy.cross": cross,
    "numpy.linalg.cross": linalg_cross,
    **every("numpy", "convolve correlate", convolution),
    **every("numpy", "polyadd polysub", polynomials()),
    "numpy.polymul": polynomials(trim_leading_zeros=[False]),
    "numpy.polydiv": lambda d: call(polynomial(d), d.array(d.pick((1,), (2,)), "f", low=0.5, high=2.0)),
    "numpy.polyval": polyval,
    "numpy.polyder": lambda d: call(polynomial(d), **d.some(m=[0, 1, 2, -1])),
    "numpy.polyint": polyint,
    "numpy.polyfit": polyfit,
    "numpy.poly": lambda d: call(d.array(d.pick((3,), (1,), (0,), (2, 2), (2, 3)), "iffc")),
    "numpy.roots": lambda d: call(d.array(d.pick((1,), (2,), (3,)), "if", low=1, high=3), **d.some(strip_zeros=[False])),
}  # fmt: skip


def inexact(d):
    return d.pick("f", "f", "c", "fc", "biffc")


def square(**more):
    return lambda d: call(d.square(inexact(d)), **d.some(**more))


def matrix(**more):
    return lambda d: call(d.matrix(kinds=inexact(d)), **d.some(**more))


def solvable(d):
    """A matrix and a right side that fits it."""
    a = d.square(inexact(d))
    batch, n = a.shape[:-2], a.shape[-1]
    return call(a, d.array(d.pick((n,), (n, 2), (*batch, n, 1), (*batch, n)), dtype=d.pick(a.dtype, d.dtype("if"))))


def lstsq(d):
    a = d.matrix((), kinds="f")
    return call(
        a, d.array(d.pick((a.shape[0],), (a.shape[0], 2)), dtype=a.dtype), **d.some(rcond=[0.1], numpy_resid=[True])
    )


def norm(d):
    x = d.array(d.shape(0 if d.wrong() else 1), "biffc")
    ndim = len(x.shape)
    axis = d.pick(None, d.axis(ndim), d.several(ndim, min(ndim, 2)))
    orders = [1, 2, np.inf, -np.inf, "fro", "nuc", 0, 3, -1, -2, "other"]
    return call(x, **d.some(ord=orders, axis=[axis], keepdims=[True]))


def vector_norm(d):
    x = d.array()
    # Roots of integers are integers in jax.
    orders = [0, 1, 2, np.inf, *([3] if x.dtype in ("float32", "float64", "complex64") else [])]
    return call(x, **d.some(axis=[d.axes(len(x.shape))], ord=orders, keepdims=[True]))


def multi_dot(d):
    n = [d.pick(1, 2, 3) for _ in range(4)]
    dtype = d.dtype("iffc")
    return call(
        [d.array((n[i], n[i + 1]), dtype=dtype) for i in range(d.integer(1, 3))], **d.some(precision=PRECISIONS)
    )


def tensorsolve(d):
    return call(d.array(d.pick((2, 3, 6), (4, 2, 2), (2, 2)), "f"), d.array(d.pick((2, 3), (4,), (2,)), "f"))


LINALG = {
    "numpy.linalg.cholesky": square(upper=[True], symmetrize_input=[False]),
    **every("numpy.linalg", "det inv", square()),
    **every("numpy.linalg", "slogdet", square(method=["lu", "qr", "other"])),
    "numpy.linalg.cond": square(p=[1, 2, "fro", np.inf, -2, "other"]),
    "numpy.linalg.eigvalsh": square(UPLO=["L", "U", "other"], symmetrize_input=[True]),
    "numpy.linalg.eig": square(),
    "numpy.linalg.eigvals": square(),
    "numpy.linalg.eigh": square(UPLO=["L", "U"], symmetrize_input=[False]),
    "numpy.linalg.svd": matrix(full_matrices=[False], compute_uv=[False]),
    "numpy.linalg.qr": matrix(mode=["reduced", "complete", "r", "raw", "other"]),
    "numpy.linalg.svdvals": matrix(),
    "numpy.linalg.matrix_rank": matrix(rtol=[0.1], hermitian=[False]),
    "numpy.linalg.pinv": matrix(rtol=[0.1]),
    "numpy.linalg.matrix_power": lambda d: call(d.square("iffc"), d.pick(0, 1, 2, 3, 5, -1, 1.5)),
    "numpy.linalg.solve": solvable,
    "numpy.linalg.lstsq": lstsq,
    "numpy.linalg.norm": norm,
    "numpy.linalg.matrix_norm": matrix(ord=["fro", 1, 2, "nuc", np.inf], keepdims=[True]),
    "numpy.linalg.vector_norm": vector_norm,
    "numpy.linalg.matrix_transpose": lambda d: call(d.array(d.shape(1))),
    "numpy.linalg.diagonal": matrix(offset=[1, -1]),
    "numpy.linalg.trace": matrix(offset=[1, -1], dtype=["float32"]),
    "numpy.linalg.multi_dot": multi_dot,
    "numpy.linalg.tensorinv": lambda d: call(d.array(d.pick((2, 3, 6), (4, 2, 2), (3, 3), (6, 2, 3)), "f"), **d.some(ind=[1, 2, 0])),
    "numpy.linalg.tensorsolve": tensorsolve,
}  # fmt: skip


def triangular(d):
    a = d.square("ffc", low=0.5, high=2.0)
    batch, n = a.shape[:-2], a.shape[-1]
    left = d.chance(0.5)
    b = d.array((*batch, n, 2) if left else (*batch, 2, n), dtype=a.dtype)
    options = {"lower": [True], "transpose_a": [True], "conjugate_a": [True], "unit_diagonal": [True]}
    return call(a, b, left_side=left, **d.some(**options))


def tridiagonal(d):
    dtype, n, batch = d.dtype("f"), d.pick(1, 3, 4), d.pick((), (2,))
    bands = [d.array((*batch, n), dtype=dtype, low=low, high=low + 1) for low in (0.1, 3.0, 0.2)]
    return call(*bands, d.array((*batch, n, d.integer(1, 2)), dtype=dtype))


def rank_one(d):
    n, dtype = d.pick(1, 3, 0), d.dtype("f")
    return call(d.array((n, n), dtype=dtype, low=1.0, high=2.0), d.array((n,), dtype=dtype))


def symmetric(d):
    a, dtype = d.matrix(kinds="f"), None
    c = (*a.shape[:-1], a.shape[-2])
    return call(a, d.array(c, dtype=a.dtype or dtype), **d.some(alpha=[2.0], beta=[0.5], symmetrize_output=[True]))


def reflectors(d):
    n, k, dtype = d.pick(2, 3), d.pick(1, 2), d.dtype("ffc")
    return call(d.array((n, k), dtype=dtype), d.array((k,), dtype=dtype))


def ormqr(d):
    n, k, dtype = d.pick(2, 3), d.pick(1, 2), d.dtype("fc")
    left = d.chance(0.6)
    return call(
        d.array((n, k), dtype=dtype),
        d.array((k,), dtype=dtype),
        d.array((n, 2) if left else (2, n), dtype=dtype),
        left=left,
        **d.some(transpose=[True]),
    )


def pivots(d):
    batch, n = d.pick((), (2,)), d.pick(1, 3, 0)
    return call(
        d.array((*batch, n), dtype=d.pick("int32", "int32", "float32"), low=0, high=max(n - 1, 0)), d.pick(n, n, n + 2)
    )


def lax_square(**more):
    # Bools become halves in jax, not ones.
    return lambda d: call(d.square(d.pick("fc", "f", "c", "iff"), stray=0), **d.some(**more))


def lax_matrix(**more):
    return lambda d: call(d.matrix(kinds=d.pick("fc", "f", "c", "iff"), stray=0), **d.some(**more))


LAX_LINALG = {
    "lax.linalg.cholesky": lax_square(symmetrize_input=[False]),
    "lax.linalg.cholesky_update": rank_one,
    "lax.linalg.eig": lax_square(compute_left_eigenvectors=[False], compute_right_eigenvectors=[False]),
    "lax.linalg.eigh": lax_square(lower=[False], symmetrize_input=[False], sort_eigenvalues=[True]),
    "lax.linalg.svd": lax_matrix(full_matrices=[False], compute_uv=[False]),
    "lax.linalg.qdwh": lax_matrix(is_hermitian=[False]),
    "lax.linalg.householder_product": reflectors,
    "lax.linalg.ormqr": ormqr,
    "lax.linalg.hessenberg": lax_square(),
    "lax.linalg.lu": lax_matrix(),
    "lax.linalg.lu_pivots_to_permutation": pivots,
    "lax.linalg.qr": lax_matrix(full_matrices=[False], pivoting=[True, False]),
    "lax.linalg.schur": lax_square(compute_schur_vectors=[False]),
    "lax.linalg.symmetric_product": symmetric,
    "lax.linalg.triangular_solve": triangular,
    "lax.linalg.tridiagonal": lax_square(lower=[False]),
    "lax.linalg.tridiagonal_solve": tridiagonal,
}  # fmt: skip


def fourier(d):
    x = d.array(d.shape(1), "biffcc")
    return call(
        x, **d.some(n=[1, 2, 4, 5, 0], axis=[d.axis(len(x.shape))], norm=["ortho", "forward", "backward", "other"])
    )


def fourier_many(count):
    def draw(d):
        x = d.array(d.shape(min(count, 2)), "biffcc")
        ndim = len(x.shape)
        axes = d.several(ndim, min(ndim, d.pick(count, count, 1, 3)))
        options = d.some(axes=[axes], norm=["ortho", "forward"])
        if d.chance(0.3):
            options["s"] = tuple(d.pick(1, 2, 3, 4) for _ in options.get("axes", (1, 1)))
        return call(x, **options)

    return draw


def frequencies(d):
    return call(d.pick(1, 2, 5, 8, 0), **d.some(d=[2, 0.5, S(0.1)], dtype=["float32", "float16"]))


def shift(d):
    x = d.array()
    return call(x, **d.some(axes=[d.axes(len(x.shape))] * 2))


def lax_fft(d):
    x = d.array(d.pick((4,), (2, 3), (3, 3), (2, 1, 3), (1,)), "ffc")
    kind = d.pick("FFT", "IFFT", "RFFT", "IRFFT", "fft", "rfft")
    count = d.integer(1, min(2, len(x.shape)))
    lengths = x.shape[len(x.shape) - count :]
    if kind == "IRFFT" and d.chance(0.9):
        lengths = (*lengths[:-1], 2 * (lengths[-1] - 1))
    return call(x, kind, lengths)


FOURIER = {
    **every("numpy.fft", "fft ifft rfft irfft hfft ihfft", fourier),
    **every("numpy.fft", "fft2 ifft2 rfft2 irfft2", fourier_many(2)),
    **every("numpy.fft", "fftn ifftn rfftn irfftn", fourier_many(3)),
    **every("numpy.fft", "fftfreq rfftfreq", frequencies),
    **every("numpy.fft", "fftshift ifftshift", shift),
    "lax.fft": lax_fft,
}

METHODS = ["nearest", "linear", "bilinear", "cubic", "lanczos3", "lanczos5", "triangle", "bicubic", "other"]


def resize(d):
    x = d.array(d.pick((3,), (2, 3), (3, 3), (2, 1, 3), (1, 2, 1, 3, 2)), "iffcb")
    shape = tuple(d.pick(n, n, n + 2, 1, 2 * n) for n in x.shape)
    return call(
        x, shape if d.chance(0.95) else shape[1:], d.pick(*METHODS), **d.some(antialias=[False], precision=["highest"])
    )


def scale_and_translate(d):
    x = d.array(d.pick((3,), (2, 3), (3, 3), (2, 1, 3)), "ff")
    ndim = len(x.shape)
    axes = tuple(d.random.sample(range(ndim), d.integer(1, ndim)))
    scale, move = (d.array((len(axes),), dtype="float32", low=0.5, high=2.0) for _ in range(2))
    # jax leaves the other axes as they are, whatever the shape says of them; phlox refuses such shapes.
    shape = tuple(n + d.integer(0, 2) if i in axes else n for i, n in enumerate(x.shape))
    return call(x, shape, axes, scale, move, d.pick(*METHODS), **d.some(antialias=[False]))


IMAGES = {"image.resize": resize, "image.scale_and_translate": scale_and_translate}

TABLE = PRODUCTS | LINALG | LAX_LINALG | FOURIER | IMAGES

test_like_jax = values(TABLE)
