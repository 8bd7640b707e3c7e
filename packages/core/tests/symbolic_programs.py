"""Programs as people write them, as functions of a module (phlox or jax) and arrays of symbolic shapes."""

from __future__ import annotations

import functools

import numpy as np

MATRIX, VECTOR, IMAGE, SEQUENCE = "f32[b,4]", "f32[b]", "f32[b,8,8,3]", "f32[b,t,16]"
HEADS, BATCH, SQUARE, PLACES = "f32[b,t,4,8]", "f32[b,3,3]", "f32[b,b]", "i32[b]"


def of_numpy(names, *types, **options):
    """The functions of `numpy` with these names, of arguments of these types."""
    return {
        f"{n} {options or ''}": (lambda m, *a, n=n: getattr(m.numpy, n)(*a, **options), *types) for n in names.split()
    }


def convolved(m, x, strides=(1, 1), padding="SAME"):
    kernel = m.numpy.ones((3, 3, 3, 5))
    return m.lax.conv_general_dilated(x, kernel, strides, padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def pooled(m, x, padding="VALID"):
    return m.lax.reduce_window(x, -np.inf, m.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), padding)


def recurrent(m, x):
    start = m.numpy.zeros((x.shape[0], 16))
    return m.lax.scan(lambda c, r: (m.numpy.tanh(c + r), c), start, m.numpy.swapaxes(x, 0, 1))


def attention(m, x, **options):
    return m.nn.dot_product_attention(x, x, x, **options)


def gradient(f):
    return lambda m, *args: m.grad(lambda *a: (f(m, *a) ** 2).sum())(*args)


SETS = [lambda m, f=f: getattr(m.numpy, f) for f in ("union1d", "intersect1d", "setxor1d", "setdiff1d")]
PROGRAMS = {
    **of_numpy("sin cumsum argsort flip ravel diff transpose std median zeros_like", MATRIX),
    **of_numpy("sum mean var max argmax sort prod any cumprod median", MATRIX, axis=0),
    **of_numpy("sum mean std min argmin cumsum sort all", MATRIX, axis=1),
    **of_numpy("dot vdot outer inner kron meshgrid", VECTOR, VECTOR),
    **of_numpy("diag ediff1d", VECTOR),
    **of_numpy("tril triu trace diagonal rot90", SQUARE),
    "matmul": (lambda m, x: x @ m.numpy.ones((4, 8)), MATRIX),
    "einsum": (lambda m, x: m.numpy.einsum("bti,bsi,bs->bt", x, x, x[..., 0]), SEQUENCE),
    "broadcast": (lambda m, x, v: x + v[:, None] * m.numpy.ones((1, 4)), MATRIX, VECTOR),
    "reshape": (lambda m, x: (x.reshape(-1), x.reshape(-1, 2), x.reshape(x.shape[0], 2, 2), x.reshape(4, -1)), MATRIX),
    "flatten": (lambda m, x: x.reshape(x.shape[0], -1), IMAGE),
    "heads": (lambda m, x: x.reshape(*x.shape[:2], 4, 4).transpose(0, 2, 1, 3), SEQUENCE),
    "concatenate": (
        lambda m, x: (m.numpy.concatenate([x, x]), m.numpy.stack([x, x], 1), m.numpy.hstack([x, x])),
        MATRIX,
    ),
    "nonzero": (lambda m, x: m.numpy.nonzero(x > 0.5, size=x.shape[0]), SQUARE),
    "vstack": (lambda m, x: m.numpy.vstack([x, m.numpy.ones((1, 4))]), MATRIX),
    "repeat": (
        lambda m, x: (m.numpy.repeat(x, 2, 0), m.numpy.tile(x, (2, 3)), m.numpy.repeat(x, x.shape[0], 1)),
        MATRIX,
    ),
    "pad": (lambda m, x: (m.numpy.pad(x, ((1, 2), (0, 0))), m.numpy.pad(x, ((1, 2), (0, 0)), mode="edge")), MATRIX),
    "pad wrapped": (lambda m, x: m.numpy.pad(x, ((2, 5), (0, 0)), mode="wrap"), MATRIX),
    "pad mirrored": (lambda m, x: (m.numpy.pad(x, 3, "reflect"), m.numpy.pad(x, 3, "symmetric")), "f32[b + 1]"),
    "roll": (lambda m, x: (m.numpy.roll(x, 1, 0), m.numpy.swapaxes(x, 0, 1), x[None, ..., None]), MATRIX),
    "split": (lambda m, x: m.numpy.split(x, 2), "f32[2*b,4]"),
    "elements": (lambda m, x: (x[0], x[-1], x[:, 0], x[..., None], x[:, 1:3]), MATRIX),
    "slices": (lambda m, x: (x[1:], x[:-1], x[::2], x[::-1], x[: x.shape[0]]), MATRIX),
    "slices of few": (lambda m, x: (x[1:-1], x[-2:], x[1::3], x[2::2]), MATRIX),
    "slices backwards": (lambda m, x: (x[::-2], x[x.shape[0] // 2 :: -1]), MATRIX),
    "slices beside indices": (
        lambda m, x: [x[m.numpy.array([0, 1]), s] for s in (slice(-2, None), slice(1, -1), slice(None, None, 2))],
        "f32[4,b]",
    ),
    "slice of known length": (lambda m, x: (x[:2], x[1:3]), "f32[b + 2,4]"),
    "at most two": (lambda m, x: x[:2], MATRIX),
    "gather": (
        lambda m, x, i: (x[i], x[i, 1], m.numpy.take(x, i, 0), x[m.numpy.arange(x.shape[0]), 0]),
        MATRIX,
        PLACES,
    ),
    "scatter": (lambda m, x, i: (x.at[0].set(1.0), x.at[i].add(1.0), x.at[:, 0].set(0.0)), MATRIX, PLACES),
    "take_along_axis": (lambda m, x: m.numpy.take_along_axis(x, m.numpy.argsort(x, 1), 1), MATRIX),
    "embedding": (lambda m, i: m.numpy.arange(40.0).reshape(10, 4)[i], PLACES),
    "dynamic slice": (lambda m, x: m.lax.dynamic_slice(x, (0, 1), (x.shape[0], 2)), MATRIX),
    "dynamic update": (lambda m, x: m.lax.dynamic_update_slice(x, m.numpy.ones((1, 4)), (0, 0)), MATRIX),
    "arange": (
        lambda m, x: (m.numpy.arange(x.shape[0]), m.numpy.arange(1, x.shape[0] + 1, 2, dtype="float32")),
        MATRIX,
    ),
    "made": (lambda m, x: (m.numpy.eye(x.shape[0]), m.numpy.zeros((x.shape[0], 3)), m.numpy.full_like(x, 2)), MATRIX),
    "broadcast_to": (lambda m, x: m.numpy.broadcast_to(x, (3, *x.shape)), MATRIX),
    "iota": (lambda m, x: m.lax.broadcasted_iota("int32", x.shape, 0), MATRIX),
    "formulas": (lambda m, x: (m.numpy.sinc(x), m.numpy.i0(x), m.scipy.special.zeta(x + 9, 2.0)), MATRIX),
    "softmax": (lambda m, x: (m.nn.softmax(x), m.nn.log_softmax(x, 0), m.nn.logsumexp(x), m.nn.gelu(x)), MATRIX),
    "one_hot": (lambda m, i: (m.nn.one_hot(i, 10), m.nn.one_hot(i, i.shape[0])), PLACES),
    "standardize": (lambda m, x: m.nn.standardize(x), MATRIX),
    "attention": (attention, HEADS),
    "causal attention": (functools.partial(attention, is_causal=True), HEADS),
    "convolution": (convolved, IMAGE),
    "convolution of any size": (convolved, "f32[b,t + 4,b + 4,3]"),
    "strided convolution": (functools.partial(convolved, strides=(2, 2), padding="VALID"), IMAGE),
    "pooling": (pooled, IMAGE),
    "pooling of any size": (functools.partial(pooled, padding="SAME"), "f32[b,2*t,2*b,3]"),
    "windows that may not fit": (lambda m, x: (convolved(m, x, padding="VALID"), pooled(m, x)), "f32[b,t,t,3]"),
    "resize": (lambda m, x: m.image.resize(x, (x.shape[0], 16, 16, 3), "bilinear"), IMAGE),
    "resize to twice the width": (lambda m, v: m.image.resize(v[None], (1, 2 * v.shape[0]), "linear"), VECTOR),
    "scan": (lambda m, x: m.lax.scan(lambda c, r: (c + r, c), m.numpy.zeros(4), x), MATRIX),
    "recurrent": (recurrent, SEQUENCE),
    "loop": (lambda m, x: m.lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], m.numpy.zeros(4)), MATRIX),
    "while": (lambda m, x: m.lax.while_loop(lambda c: c.sum() < 10, lambda c: c + 1, x), MATRIX),
    "cond": (lambda m, x: m.lax.cond(x.sum() > 0, lambda y: y, lambda y: -y, x), MATRIX),
    "map": (lambda m, x: m.lax.map(lambda r: r * 2, x), MATRIX),
    "vmap": (lambda m, x: m.vmap(m.grad(lambda r: m.numpy.sin(r).sum()))(x), MATRIX),
    "switch": (lambda m, x: m.lax.switch(x.shape[0] % 2, [m.numpy.sin, m.numpy.cos], x), MATRIX),
    "while of each": (
        lambda m, x: m.vmap(lambda r: m.lax.while_loop(lambda c: c.sum() < 10, m.numpy.exp, r))(x),
        MATRIX,
    ),
    "inner jit": (lambda m, x: m.jit(m.numpy.sin)(x) + 1, MATRIX),
    "checkpoint": (lambda m, x: m.grad(m.checkpoint(lambda y: m.numpy.sin(y).sum()))(x), MATRIX),
    "hessian": (lambda m, v: m.hessian(lambda y: (y**3).sum())(v), VECTOR),
    "linalg": (
        lambda m, x: [f(x @ x.mT + 3 * m.numpy.eye(3)) for f in (m.numpy.linalg.inv, m.numpy.linalg.det)],
        BATCH,
    ),
    "gradient of singular values": (
        gradient(lambda m, x: m.numpy.linalg.svd(x, compute_uv=False)),
        SEQUENCE,
    ),
    "singular values": (lambda m, x: m.numpy.linalg.svd(x, compute_uv=False), SEQUENCE),
    "solve of each": (lambda m, x: m.vmap(lambda r: m.numpy.linalg.solve(m.numpy.diag(r + 3), r))(x), MATRIX),
    "gradient of lu_factor": (gradient(lambda m, x: m.scipy.linalg.lu_factor(x)[0]), BATCH),
    "cholesky": (lambda m, x: m.numpy.linalg.cholesky(x @ x.mT + 3 * m.numpy.eye(3)), BATCH),
    "triangular": (lambda m, x, y: m.scipy.linalg.solve_triangular(x + 9 * m.numpy.eye(x.shape[0]), y), SQUARE, MATRIX),
    "random": (
        lambda m, x: m.random.normal(m.random.key(0), x.shape) + m.random.uniform(m.random.key(1), (4,)),
        MATRIX,
    ),
    "keys": (lambda m, x: m.vmap(m.random.normal)(m.random.split(m.random.key(0), x.shape[0])), MATRIX),
    "categorical": (lambda m, x: m.random.categorical(m.random.key(0), x), MATRIX),
    "lengths": (lambda m, x: (x.sum(0) / x.shape[0], x * x.shape[0] - x.size, m.numpy.sqrt(x.shape[0])), MATRIX),
    "length as a result": (lambda m, x: (x.shape[0], m.lax.cond(True, lambda: x.shape[0] + 1, lambda: 0)), MATRIX),
    "length and numbers": (lambda m, x: (x.shape[0] + 1.5, np.arange(3) * x.shape[0], x < x.shape[0]), MATRIX),
    "shape as an array": (lambda m, x: (m.numpy.array(x.shape), m.numpy.asarray(x.shape[0])), MATRIX),
    "shape_as_value": (lambda m, x: m.lax.shape_as_value(x.shape), MATRIX),
    "searching": (lambda m, x: (m.lax.top_k(x, 2), m.numpy.nonzero(x[:, 0], size=3), m.numpy.clip(x, 0, 1)), MATRIX),
    "histogram": (lambda m, x: m.numpy.histogram(x, bins=5)[0], VECTOR),
    "segment_sum": (lambda m, x, i: m.ops.segment_sum(x, i, num_segments=5), MATRIX, PLACES),
    "top_k": (lambda m, v, w: (m.lax.top_k(v, 1), m.grad(lambda y: m.lax.top_k(y, 1)[0].sum())(w)), VECTOR, "f32[t]"),
    "unique": (lambda m, i: m.numpy.unique(i, True, True, True, size=3, fill_value=7), PLACES),
    "unique rows": (lambda m, x: m.numpy.unique(x, axis=0, size=x.shape[0]), MATRIX),
    "sets": (lambda m, i, j: [f(m)(i, j, size=4) for f in SETS], PLACES, "i32[t]"),
    "searchsorted": (
        lambda m, v, w: [
            m.numpy.searchsorted(m.numpy.sort(v), w, side, method=method)
            for side in ("left", "right")
            for method in ("scan", "scan_unrolled", "sort", "compare_all")
        ],
        VECTOR,
        "f32[t]",
    ),
    "interp": (
        lambda m, v, w: (m.numpy.interp(w, m.numpy.sort(v), v, left=7), m.numpy.interp(w, v, v, period=3.0)),
        VECTOR,
        "f32[t]",
    ),
    "digitize": (lambda m, v, w: [m.numpy.digitize(w, m.numpy.sort(v)[::step]) for step in (1, -1)], VECTOR, "f32[t]"),
    "permutation": (
        lambda m, v: (m.random.permutation(m.random.key(0), v), m.random.permutation(m.random.key(0), v.shape[0])),
        VECTOR,
    ),
    "permuted rows": (
        lambda m, x: [m.random.permutation(m.random.key(0), x, 0, independent) for independent in (False, True)],
        MATRIX,
    ),
    "choice": (
        lambda m, v: (
            m.random.choice(m.random.key(0), v.shape[0], (3,)),
            m.random.choice(m.random.key(0), v, (v.shape[0],), replace=False),
        ),
        VECTOR,
    ),
    "editing": (
        lambda m, v: (
            m.numpy.insert(v, 1, 3.0),
            m.numpy.delete(v, -1),
            m.numpy.delete(v, 1, assume_unique_indices=True),
        ),
        "f32[b + 2]",
    ),
    "of lengths": (
        lambda m, v, x: (
            m.numpy.fromfunction(lambda i, j: i + j, (v.shape[0], 2)),
            m.numpy.fill_diagonal(x, 1.0, inplace=False),
            m.scipy.linalg.toeplitz(v),
            m.numpy.packbits(v > 0),
            m.numpy.linalg.multi_dot([x.T, x, x.T]),
        ),
        VECTOR,
        MATRIX,
    ),
    "polynomials": (lambda m, v: (m.numpy.polyval(v, 2.0), m.numpy.polyadd(v, m.numpy.ones(1))), VECTOR),
    "map in batches": (lambda m, x: m.lax.map(m.numpy.sin, x, batch_size=2), MATRIX),
    "sem": (lambda m, x: m.scipy.stats.sem(x), MATRIX),
    "quantile": (lambda m, x: (m.numpy.quantile(x, 0.3, axis=0), m.numpy.percentile(x, 50)), MATRIX),
    "bad reshape": (lambda m, x: x.reshape(-1, 3), MATRIX),
    "bad product": (lambda m, x: x @ x, MATRIX),
    "bad sum": (lambda m, x, y: x + y, MATRIX, "f32[t,4]"),
    "undecided": (lambda m, x: x * 2 if x.shape[0] > 3 else x, MATRIX),
    "range": (lambda m, x: [x[i] for i in range(x.shape[0])], MATRIX),
    **{
        f"gradient of {name}": (gradient(f), *types)
        for name, (f, *types) in {
            "slices": (lambda m, x: x[1:] * m.nn.softmax(x)[:-1], MATRIX),
            "statistics": (lambda m, x: x.mean(0) + x.max(0) + x.std(), MATRIX),
            "sort": (lambda m, x: m.numpy.sort(x, 0)[0] + m.numpy.cumsum(x, 0)[-1], MATRIX),
            "gather": (lambda m, x, i: x[i], MATRIX, PLACES),
            "concatenate": (lambda m, x: m.numpy.concatenate([x, m.numpy.pad(x, ((1, 1), (0, 0)))]), MATRIX),
            "convolution": (convolved, IMAGE),
            "pooling": (pooled, IMAGE),
            "recurrent": (lambda m, x: recurrent(m, x)[0], SEQUENCE),
            "attention": (attention, HEADS),
        }.items()
    },
}


def structs(m, types):
    """`ShapeDtypeStruct`s of one scope."""
    scope = m.export.SymbolicScope()
    made = []
    for text in types:
        dtype, _, shape = text.removesuffix("]").partition("[")
        shape = m.export.symbolic_shape(shape, scope=scope)
        made.append(m.ShapeDtypeStruct(shape, {"f32": "float32", "i32": "int32"}[dtype]))
    return made


def arrays(types, b, t):
    rng = np.random.default_rng(b)
    for text in types:
        shape = eval(f"({text[4:-1]},)", {"b": b, "t": t})
        yield rng.normal(size=shape).astype("float32") if text[0] == "f" else rng.integers(0, 2, shape).astype("int32")
