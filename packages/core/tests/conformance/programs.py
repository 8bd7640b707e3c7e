"""Calls of functions that take functions or descriptions, which rows of a table cannot say: (case, arguments) by path."""

from __future__ import annotations

import numpy as np

from judge import rng


def F(*shape, low=-2.0, high=2.0, seed=0):
    """Random numbers, double precision where 64 bits are on."""
    return rng("programs", shape, low, high, seed).uniform(low, high, shape)


def N(*shape, low=0, high=3):
    """Random int32 numbers, without the upper end."""
    return rng("programs", shape, low, high).integers(low, high, shape).astype(np.int32)


def gathered(offset, collapsed, start, sizes, **options):
    def run(m, x, i):
        numbers = m.lax.GatherDimensionNumbers(offset, collapsed, start, **options)
        return m.lax.gather(x, i, numbers, sizes)

    return run


def scattered(name, window, inserted, target, mode=None, **options):
    def run(m, x, i, y):
        numbers = m.lax.ScatterDimensionNumbers(window, inserted, target, **options)
        return getattr(m.lax, name)(x, i, y, numbers, mode=mode)

    return run


def scatters(name):
    """Rows, elements in a batch, and windows that may lie outside."""
    return [
        (scattered(name, (1,), (0,), (0,)), (F(4, 3), np.array([[2], [0]]), F(2, 3, low=0.5))),
        (
            scattered(name, (), (1,), (1,), operand_batching_dims=(0,), scatter_indices_batching_dims=(0,)),
            (F(3, 4), N(3, 1), F(3, low=0.5)),
        ),
        (scattered(name, (1, 2), (), (0,), "clip"), (F(4, 3), np.array([[3]]), F(1, 2, 3, low=0.5))),
    ]


def apply_scatter(m, x, i):
    numbers = m.lax.ScatterDimensionNumbers((1,), (0,), (0,))
    return m.lax.scatter_apply(x, i, m.numpy.sin, numbers, update_shape=(2, 3))


def along(name, **options):
    """A collective over an axis that the program maps itself."""

    def run(m, x):
        return m.vmap(lambda x: getattr(m.lax, name)(x, "i", **options), axis_name="i")(x)

    return run


def root(m, a):
    return m.lax.custom_root(
        lambda x: x**3 - a, m.numpy.ones_like(a), lambda f, x: m.numpy.cbrt(a), lambda g, y: y / g(m.numpy.ones_like(y))
    )


def solved(m, a, b):
    solve = lambda matvec, b: m.numpy.linalg.solve(m.jacfwd(matvec)(b), b)
    return m.lax.custom_linear_solve(lambda x: a @ x, b, solve, solve)


def while_loop(m, x):
    return m.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, m.numpy.sin(c[1]) * x), (0, x))[1]


def uneven_loop(m, n, x):
    """A loop that runs longer for some examples than for others."""
    return m.lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 1.5), (0, x))[1]


def ragged(m, x, y, sizes):
    numbers = m.lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])
    return m.lax.ragged_dot_general(x, y, sizes, numbers)


def of_size(name):
    """A function with results as long as the elements make them, cut or filled to three."""
    return lambda m, *xs: getattr(m.numpy, name)(*xs, size=3)


def composed(m, x):
    return m.lax.composite(lambda x: m.numpy.sin(x) * x, "my.wave")(x)


LOOSE = np.eye(3) * 3
SIZES = np.array([2, 1, 3], np.int32)

PROGRAMS = {
    "lax.gather": [
        (gathered((1,), (0,), (0,), (1, 3)), (F(4, 3), np.array([[2], [0]]))),
        (gathered((0,), (0,), (0, 1), (1, 2)), (F(4, 5), N(3, 2))),
        (
            gathered((), (1,), (1,), (1, 1), operand_batching_dims=(0,), start_indices_batching_dims=(0,)),
            (F(3, 4), N(3, 1)),
        ),
    ],
    **{f"lax.{name}": scatters(name) for name in ("scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max")},
    "lax.scatter_apply": [(apply_scatter, (F(4, 3), np.array([[2], [0]])))],
    "lax.cond": [
        (lambda m, p, x: m.lax.cond(p > 0, lambda x: m.numpy.sin(x), lambda x: x * x, x), (F(), F(3))),
        (lambda m, x, y: m.lax.cond(True, lambda x: x * y, lambda x: x, x), (F(3), F(3))),
    ],
    "lax.switch": [(lambda m, i, x: m.lax.switch(i, [m.numpy.sin, m.numpy.exp, lambda x: x * x], x), (N(high=4), F(3)))],
    "lax.scan": [
        (lambda m, c, x: m.lax.scan(lambda c, x: (c * m.numpy.sin(x), c + x), c, x), (F(2), F(3, 2))),
        (lambda m, c, x: m.lax.scan(lambda c, x: (c * x, None), c, x, reverse=True, unroll=2)[0], (F(2), F(3, 2))),
    ],
    "lax.map": [
        (lambda m, x: m.lax.map(lambda x: m.numpy.sin(x) * x.sum(), x), (F(4, 2),)),
        (lambda m, x, y: m.lax.map(lambda x: x * y, x, batch_size=2), (F(5, 2), F(2))),
    ],
    "lax.while_loop": [(while_loop, (F(3),)), (uneven_loop, (N(high=5), F(3)))],
    "lax.fori_loop": [(lambda m, x, y: m.lax.fori_loop(0, 3, lambda i, c: c * y + i, x), (F(3), F(3)))],
    "lax.clamp": [(lambda m, a, x, b: m.lax.clamp(a, x, b), (F(5, high=-1), F(5), F(5, low=1)))],
    "lax.associative_scan": [
        (lambda m, x: m.lax.associative_scan(m.numpy.multiply, x), (F(5, 2),)),
        (lambda m, x: m.lax.associative_scan(m.numpy.add, x, reverse=True, axis=1), (F(2, 5),)),
        (
            lambda m, x, y: m.lax.associative_scan(
                lambda a, b: (a[0] * b[0], a[1] * b[1]), (x, y), reverse=True, axis=-1
            ),
            (F(2, 5), F(2, 3, 5)),
        ),
    ],
    "lax.custom_root": [(root, (F(3, low=0.5),))],
    "lax.custom_linear_solve": [(solved, (F(3, 3) + LOOSE, F(3)))],
    "numpy.nancumsum": [(lambda m, x: m.numpy.nancumsum(x, 1), (F(2, 3),))],
    "numpy.nancumprod": [(lambda m, x: m.numpy.nancumprod(x, 0), (F(2, 3),))],
    "numpy.partition": [(lambda m, x: m.numpy.partition(x, 1), (F(2, 4),))],
    "numpy.put": [(lambda m, x, y: m.numpy.put(x, np.array([0, 2]), y, inplace=False), (F(4), F(2)))],
    "numpy.bincount": [(lambda m, i, w: m.numpy.bincount(i, w, length=3), (N(4), F(4)))],
    "numpy.linalg.cond": [(lambda m, x: m.numpy.linalg.cond(x), (F(3, 3) + LOOSE,))],
    "ops.segment_prod": [(lambda m, x, i: m.ops.segment_prod(x, i, 3), (F(4), N(4)))],
    "lax.stage": [(lambda m, x: m.lax.stage(x), (F(3),))],
    "lax.dce_sink": [(lambda m, x: (m.lax.dce_sink(x), x * 2)[1], (F(3),))],
    "lax.composite": [(composed, (F(3),))],
    "lax.platform_dependent": [
        (lambda m, x: m.lax.platform_dependent(x, cpu=m.numpy.sin, default=m.numpy.cos), (F(3),))
    ],
    "lax.optimization_barrier": [(lambda m, x, y: m.lax.optimization_barrier((x, y)), (F(2), F(3)))],
    "lax.reduce": [
        (lambda m, x: m.lax.reduce(x, np.ones((), x.dtype), lambda a, b: a * b, (1,)), (F(2, 3),)),
        (lambda m, x: m.lax.reduce(x, np.zeros((), x.dtype), m.lax.add, (0, 2)), (F(2, 3, 2),)),
    ],
    "lax.reduce_window": [
        (lambda m, x: m.lax.reduce_window(x, 0.0, m.lax.add, (2, 2), (1, 1), "VALID"), (F(3, 4),)),
        (lambda m, x: m.lax.reduce_window(x, -np.inf, m.lax.max, (2, 3), (2, 1), "SAME"), (F(4, 5),)),
        (lambda m, x: m.lax.reduce_window(x, np.inf, m.lax.min, (2,), (1,), ((1, 0),)), (F(5),)),
    ],
    "lax.ragged_dot": [(lambda m, x, y, s: m.lax.ragged_dot(x, y, s), (F(6, 3), F(3, 3, 2), SIZES))],
    "lax.ragged_dot_general": [(ragged, (F(6, 3), F(3, 3, 4), SIZES))],
    "lax.scaled_dot": [(lambda m, x, y: m.lax.scaled_dot(x, y), (F(2, 3), F(3, 4)))],
    "lax.index_take": [(lambda m, x, i: m.lax.index_take(x, (i,), (0,)), (F(4, 3), np.array([2, 0], np.int32)))],
    "lax.linalg.qdwh": [(lambda m, x: m.lax.linalg.qdwh(x)[:2], (F(3, 3) + LOOSE,))],
    "lax.psum": [(along("psum"), (F(2, 3),))],
    "lax.pmean": [(along("pmean"), (F(2, 3),))],
    "lax.pmax": [(along("pmax"), (F(2, 3),))],
    "lax.pmin": [(along("pmin"), (F(2, 3),))],
    "lax.ppermute": [(along("ppermute", perm=[(0, 1), (1, 0)]), (F(2, 3),))],
    "lax.pshuffle": [(along("pshuffle", perm=[1, 0]), (F(2, 3),))],
    "lax.pswapaxes": [(along("pswapaxes", axis=0), (F(2, 2, 3),))],
    "lax.all_gather": [(along("all_gather"), (F(2, 3),)), (along("all_gather", axis=1, tiled=True), (F(2, 3, 2),))],
    "lax.all_to_all": [(along("all_to_all", split_axis=0, concat_axis=1), (F(2, 2, 3),))],
    "lax.psum_scatter": [(along("psum_scatter"), (F(2, 2, 3),))],
    "lax.axis_index": [(lambda m, x: m.vmap(lambda x: x * m.lax.axis_index("i"), axis_name="i")(x), (F(2, 3),))],
    "lax.axis_size": [(lambda m, x: m.vmap(lambda x: x * m.lax.axis_size("i"), axis_name="i")(x), (F(2, 3),))],
    "lax.pbroadcast": [(along("pbroadcast", source=1), (F(2, 3),))],
    "lax.pvary": [(lambda m, x: m.vmap(lambda x: m.lax.pvary(x, "i") * 2, axis_name="i")(x), (F(2, 3),))],
    "lax.pcast": [(along("pcast", to="varying"), (F(2, 3),))],
    "numpy.vectorize": [
        (lambda m, x, y: m.numpy.vectorize(m.numpy.dot, signature="(n),(n)->()")(x, y), (F(2, 3), F(3))),
    ],
    "numpy.piecewise": [
        (lambda m, x: m.numpy.piecewise(x, [x < 0, x > 1], [lambda x: x * x, m.numpy.sin, 0.5]), (F(4),)),
    ],
    **{
        f"numpy.{name}": [(of_size(name), (N(5), N(4)))] for name in ("intersect1d", "setdiff1d", "setxor1d", "union1d")
    },
    **{
        f"numpy.{name}": [(of_size(name), (N(5),))]
        for name in ("unique", "unique_all", "unique_counts", "unique_inverse", "unique_values", "flatnonzero")
    },
    "numpy.nonzero": [(of_size("nonzero"), (N(2, 3),))],
    "numpy.argwhere": [(of_size("argwhere"), (N(2, 3),))],
    "numpy.polyfit": [(lambda m, x, y: m.numpy.polyfit(x, y, 1), (np.array([0.5, 1.0, 2.5, 4.0]), F(4)))],
    "numpy.fix": [(lambda m, x: m.numpy.fix(x), (F(4),))],
    "numpy.frompyfunc": [(lambda m, x, y: m.numpy.frompyfunc(lambda a, b: a * b + a, 2, 1)(x, y), (F(2, 3), F(3)))],
    "numpy.roots": [(lambda m, p: m.numpy.roots(p, strip_zeros=False), (np.array([1.0, -6.0, 11.0, -6.0]),))],
}  # fmt: skip
