"""Drawn calls of what goes along axes: reductions, running results, statistics, order, search, sets, segments."""

import numpy as np

from conformance.drawn import every, values
from conformance.harness import Of, S, call


def reduction(kinds="bifc", initial=(), where=True, dtype=False, **more):
    """An array, axes, and some of the keywords of reductions."""

    def draw(d):
        x = d.array(kinds=kinds, odd=d.chance(0.2))
        ndim = len(x.shape)
        axes = [{"axis": d.axes(ndim)}, {"axis": d.axes(ndim)}, {}]
        options = {"keepdims": [True, False], **more}
        if where:
            options["where"] = [d.array(d.pick(x.shape, x.shape, x.shape[1:], ()), "b")]
        if dtype:
            options["dtype"] = [d.dtype("ifc")]
        if initial:
            options["initial"] = [*initial, d.number(kinds)]
        chosen = d.some(**options)
        if "where" in chosen and initial and not dtype and d.chance(0.9):
            chosen.setdefault("initial", initial[0])
        return call(x, **d.pick(*axes), **chosen)

    return draw


def arg(d):
    # That jax takes complex numbers if there are none is chance.
    x = d.array(dtype=d.dtype("biff", stray=0), odd=d.chance(0.3))
    return call(x, **d.some(axis=[d.axis(len(x.shape)), None], keepdims=[True]))


def running(d):
    x = d.array(kinds="biffc")
    return call(x, **d.some(axis=[d.axis(len(x.shape))] * 3 + [None], dtype=[d.dtype("ifc")]))


def cumulative(d):
    x = d.array(d.shape(1, 2 if d.chance(0.5) else 1))
    axis = {"axis": d.axis(len(x.shape))} if len(x.shape) > 1 or d.chance(0.5) else {}
    return call(x, **axis, **d.some(include_initial=[True, False], dtype=[d.dtype("ifc")]))


def quantile(scale):
    def draw(d):
        x = d.array(d.shape(1), "iifff")
        q = d.pick(S(0.5 * scale), S(0), d.array(d.pick((), (2,), (2, 2), (0,)), "f", low=0.0, high=scale))
        methods = ["linear", "lower", "higher", "nearest", "midpoint", "inverted_cdf", "hazen", "weibull", "nonsense"]
        return call(x, q, **d.some(axis=[d.axes(len(x.shape))], keepdims=[True], method=methods))

    return draw


def median(d):
    x = d.array(kinds="iifffb")
    return call(x, **d.some(axis=[d.axes(len(x.shape))], keepdims=[True]))


def average(d):
    x = d.array()
    ndim = len(x.shape)
    axis = d.axes(ndim)
    if d.chance(0.5) or type(axis) is tuple:
        weights = d.array(x.shape, low=0.2, high=2.0)
    else:
        weights = d.array(x.shape if axis is None or not -ndim <= axis < ndim else (x.shape[axis],), low=0.2, high=2.0)
    return call(x, **d.some(axis=[axis], weights=[weights], returned=[True, False], keepdims=[True]))


def covariance(d):
    x = d.array(d.pick((3,), (2, 3), (1, 3), (3, 3), (2, 3, 2), (0, 2)), "iiffc")
    n = x.shape[-1]
    y = d.array(d.pick(x.shape, (n,), (1, n)), "if")
    options = {
        "y": [y],
        "rowvar": [True, False],
        "bias": [True],
        "ddof": [0, 1, 2],
        "dtype": ["float32", "complex64", "int16"],
    }
    if x.shape in ((3,), (3, 3)):
        options["aweights"] = [d.array((3,), "f", low=0.5, high=2.0)]
        options["fweights"] = [d.array((3,), "i", low=1, high=3)]
    return call(x, **d.some(**options))


def correlation(d):
    x = d.array(d.pick((3,), (2, 3), (1, 3), (3, 3)), "iiffc")
    return call(x, **d.some(y=[d.array((x.shape[-1],), "if")], rowvar=[True, False], dtype=[d.dtype("fc")]))


def sort(d):
    x = d.array(kinds="biffc", odd=d.chance(0.3))
    return call(
        x,
        **d.some(
            axis=[d.axis(len(x.shape))] * 3 + [None],
            stable=[True, True],
            descending=[True, False],
            kind=[None, "stable"],
        ),
    )


def partition(d):
    x = d.array(d.shape(1), "iiff")
    axis = d.axis(len(x.shape))
    n = x.shape[axis] if -len(x.shape) <= axis < len(x.shape) else 1
    return call(x, d.integer(-n, max(n - 1, 0)) if d.chance(0.9) else n, axis)


def lexsort(d):
    shape = d.shape(1)
    return call(
        [d.array(shape, "iff", whole=True) for _ in range(d.integer(1, 3))], **d.some(axis=[d.axis(len(shape))])
    )


def search(d):
    x = d.array(d.pick((4,), (3,), (1,), (0,), (2, 3)), "iiffc", whole=True)
    v = d.array(dtype=d.pick(x.dtype, d.dtype("if")))
    methods = ["scan", "scan_unrolled", "sort", "compare_all", "nonsense"]
    return call(x, d.pick(v, v, d.number("if")), **d.some(side=["left", "right", "middle"], method=methods))


def digitize(d):
    bins = d.pick([0.0, 1.0, 2.0], [2.0, 0.5, -1.0], [0, 1])
    return call(d.array(kinds="iff"), d.pick(bins, d.array((0,), "f")), **d.some(right=[True, False]))


def bins(d):
    return d.pick(2, 3, 1, [0.0, 1.0, 2.0], d.array((3,), "f", low=0, high=0))


def histogram(density=True):
    def draw(d):
        x = d.array(kinds="iff")
        ranges = [(0, 2), (-1.0, 1.0), (0.0, 0.0)]
        options = {"bins": [2, 3, [0.0, 1.0, 2.0]], "range": ranges, "weights": [d.array(x.shape, "iff")]}
        if density:
            options["density"] = [True, False]
        return call(x, **d.some(**options))

    return draw


def histogram2d(d):
    n = d.pick(1, 3, 4)
    x, y = (d.array((n,), "iff") for _ in range(2))
    weights = d.array((n,), "f")
    return call(x, y, bins=d.pick(2, [2, 3], [[0.0, 1.0], 2]), **d.some(weights=[weights], density=[True]))


def histogramdd(d):
    x = d.array(d.pick((3, 2), (4, 1), (1, 2)), "iff")
    weights = d.array((x.shape[0],), "f")
    return call(x, bins=d.pick(2, [2] * x.shape[1], [2]), **d.some(weights=[weights], density=[True]))


def bincount(d):
    x = d.array(d.pick((3,), (4,), (0,), (2, 3)), "i", low=0 if d.chance(0.8) else -2, high=4)
    return call(x, **d.some(weights=[d.array(x.shape, "iff")], minlength=[0, 3, 7, -1], length=[2, 5, 0]))


def nonzero(d):
    # Of no elements jax gives zeros, whatever the fill value is.
    x = d.array(d.full(), kinds="bifc", whole=True)
    return call(x, size=d.pick(0, 2, 5), **d.some(fill_value=[-1, 7])) if d.chance(0.8) else call(x)


def unique(d):
    x = d.array(d.full() if d.chance(0.9) else (0,), kinds="biffc", whole=True)
    flags = d.some(return_index=[True], return_inverse=[True], return_counts=[True], equal_nan=[False])
    size = {"size": d.pick(1, 3, 9), **d.some(fill_value=[-1, S(2)])} if d.chance(0.8) else {}
    return call(x, **flags, **size, **d.some(axis=[d.axis(len(x.shape))] if len(x.shape) else [None]))


def unique_parts(d):
    # Of no elements jax gives fewer counts than values.
    x = d.array(d.full(), kinds="biffc", whole=True)
    return call(x, **({"size": d.pick(1, 3, 9), **d.some(fill_value=[-1])} if d.chance(0.8) else {}))


def unique_values(d):
    return call(d.array(kinds="biff", whole=True), **({"size": d.pick(1, 3, 9)} if d.chance(0.8) else {}))


def two_sets(d, full=False):
    """Two arrays with elements in common, and whether each of them has no element twice."""
    if d.chance(0.2):
        dtype = d.dtype("if", stray=0)
        return [np.arange(n, n + d.integer(int(full), 4), dtype=dtype)[::-1] for n in (1, 3)], d.some(
            assume_unique=[True]
        )
    dtype = d.dtype("iff")
    shape = d.full if full else d.shape
    return [d.array(shape(), dtype=d.pick(dtype, dtype, d.dtype("bf")), whole=True) for _ in range(2)], {}


def sets(full=False, **more):
    def draw(d):
        size = {"size": d.pick(1, 3, 9), **d.some(fill_value=[-1])} if d.chance(0.8) else {}
        arrays, unique = two_sets(d, full)
        return call(*arrays, **unique, **size, **d.some(**more))

    return draw


def isin(d):
    methods = ["auto", "compare_all", "binary_search", "sort"]
    arrays, unique = two_sets(d)
    return call(*arrays, **unique, **d.some(invert=[True], method=methods))


def interp(d):
    n = d.pick(1, 3, 4)
    points = [0.0, 1.0, 2.5, 4.0][:n]
    fp = d.array((n,), "iffc")
    return call(d.array(kinds="iff"), points, fp, **d.some(left=[S(7.0), -1], right=[S(8)], period=[3.0, None]))


def trapezoid(d):
    y = d.array(d.shape(1))
    axis = d.axis(len(y.shape))
    return call(y, **d.some(x=[d.array(y.shape, "f"), d.array((3,), "f")], dx=[2.0, S(0.5)], axis=[axis]))


def diff(d):
    x = d.array(d.shape(1))
    options = {
        "n": [0, 1, 2, 3, -1],
        "axis": [d.axis(len(x.shape))],
        "prepend": [d.number(), S(0)],
        "append": [d.number()],
    }
    return call(x, **d.some(**options))


def gradient(d):
    x = d.array(d.pick((3,), (4,), (3, 3), (2, 3), (3, 2, 2), (1,)), "iffc")
    ndim = len(x.shape)
    axis = d.pick(d.axis(ndim), tuple(range(ndim)), None)
    spacing = d.pick([], [], [2.0], [S(0.5)])
    return call(x, *spacing, **d.some(axis=[axis]))


def segments(d):
    data = d.array(d.shape(1), "bifc")
    n = data.shape[0]
    ids = d.array((n,), "i", low=-1 if d.chance(0.3) else 0, high=4)
    options = {
        "indices_are_sorted": [False],
        "unique_indices": [False],
        "bucket_size": [2],
        "mode": ["drop", "clip", "fill"],
    }
    return (
        call(data, ids, num_segments=d.pick(3, 5, 1, 0), **d.some(**options))
        if d.chance(0.8) or not n
        else call(data, ids)
    )


def with_axis(kinds="biffc", wrong=0.05):
    """lax: an array and the tuple of its axes; `wrong` says how often one does not exist."""

    def draw(d):
        x = d.array(kinds=kinds, odd=d.chance(0.2))
        ndim = len(x.shape)
        return call(x, d.several(ndim, d.integer(0, ndim)) if not d.chance(wrong) else d.pick((ndim,), (-ndim - 1,)))

    return draw


def lax_arg(d):
    x = d.array(d.shape(1), "biffc", odd=d.chance(0.3))
    return call(x, d.axis(len(x.shape)), d.pick("int32", "int32", "uint8", "int8", "float32"))


def lax_running(kinds):
    def draw(d):
        x = d.array(d.shape(1), kinds, odd=d.chance(0.2))
        return call(x, **d.some(axis=[d.axis(len(x.shape))], reverse=[True, False]))

    return draw


def lax_sort(d):
    shape = d.shape(1)
    count = d.pick(1, 2, 3)
    xs = [d.array(shape, "biffc", whole=True) for _ in range(count)]
    options = {"dimension": [d.axis(len(shape))], "is_stable": [True, True]}
    if count == 1:
        return call(d.pick(xs[0], xs), **d.some(**options))
    return call(xs, num_keys=d.pick(*range(1, count + 1), count + d.wrong()), **d.some(**options))


def sort_key_val(d):
    keys = d.array(d.shape(1), "iff", whole=True)
    values = d.array(keys.shape if d.chance(0.95) else None, "bifc")
    return call(keys, values, **d.some(dimension=[d.axis(len(keys.shape))], is_stable=[True]))


def top_k(d):
    x = d.array(d.shape(1), "iff", whole=True)
    return call(x, d.pick(0, 1, 2, 3, -1 if d.wrong() else 1), **d.some(axis=[d.axis(len(x.shape))]))


def approximate(d):
    x = d.array(d.shape(1), "f")
    return call(x, d.pick(1, 1, 2, 3), **d.some(reduction_dimension=[d.axis(len(x.shape))], recall_target=[0.5]))


def lax_reduce(d):
    shape, count = d.shape(), d.pick(1, 1, 2)
    xs = [d.array(shape, "iiff") for _ in range(count)]
    zeros = [d.array((), dtype=x.dtype, low=0, high=0) for x in xs]
    ndim = len(shape)
    axes = d.several(ndim, d.integer(0, ndim))
    if count == 1:
        return call(xs[0], zeros[0], d.pick(Of("lax.add"), Of("lax.max"), Of("lax.min"), lambda x, y: x + y * 2), axes)
    return call(xs, zeros, lambda x, y: [x[0] + y[0], x[1] + y[1]], axes)


SUMS = {"initial": (2, S(0.5)), "dtype": True, "promote_integers": [False]}
NAN_SUMS = {"initial": (2, S(0.5)), "dtype": True}
EXTREMES = {"initial": (1, S(-1))}
MOMENTS = {"kinds": "bifffc", "dtype": True}
SPREADS = {**MOMENTS, "ddof": [0, 1, 1.5]}

TABLE = {
    **every("numpy", "sum prod", reduction(**SUMS)),
    **every("numpy", "nansum nanprod", reduction(**NAN_SUMS)),
    **every("numpy", "max amax min amin nanmax nanmin", reduction(**EXTREMES)),
    **every("numpy", "all any", reduction()),
    **every("numpy", "mean nanmean", reduction(**MOMENTS)),
    **every("numpy", "std var", reduction(**SPREADS, correction=[0, 1])),
    **every("numpy", "nanstd nanvar", reduction(**SPREADS)),
    **every("numpy", "count_nonzero ptp", reduction(where=False)),
    **every("numpy", "argmax argmin nanargmax nanargmin", arg),
    **every("numpy", "cumsum cumprod nancumsum nancumprod", running),
    **every("numpy", "cumulative_sum cumulative_prod", cumulative),
    **every("numpy", "quantile nanquantile", quantile(1.0)),
    **every("numpy", "percentile nanpercentile", quantile(100.0)),
    **every("numpy", "median nanmedian", median),
    "numpy.average": average,
    "numpy.cov": covariance,
    "numpy.corrcoef": correlation,
    **every("numpy", "sort argsort", sort),
    **every("numpy", "partition argpartition", partition),
    "numpy.lexsort": lexsort,
    "numpy.sort_complex": lambda d: call(d.array(d.shape(1), "biffc")),
    "numpy.searchsorted": search,
    "numpy.digitize": digitize,
    "numpy.histogram": histogram(),
    "numpy.histogram_bin_edges": histogram(density=False),
    "numpy.histogram2d": histogram2d,
    "numpy.histogramdd": histogramdd,
    "numpy.bincount": bincount,
    **every("numpy", "nonzero flatnonzero argwhere", nonzero),
    "numpy.unique": unique,
    **every("numpy", "unique_all unique_counts unique_inverse", unique_parts),
    "numpy.unique_values": unique_values,
    "numpy.intersect1d": sets(full=True, return_indices=[True]),
    "numpy.setdiff1d": sets(),
    "numpy.setxor1d": sets(),
    "numpy.union1d": sets(),
    "numpy.isin": isin,
    "numpy.interp": interp,
    "numpy.trapezoid": trapezoid,
    "numpy.diff": diff,
    "numpy.ediff1d": lambda d: call(d.array(), **d.some(to_end=[d.number(), S(1)], to_begin=[d.array((2,))])),
    "numpy.gradient": gradient,
    **every("ops", "segment_sum segment_prod segment_max segment_min", segments),
    **every("lax", "reduce_sum reduce_prod reduce_max reduce_min", with_axis()),
    **every("lax", "reduce_and reduce_or reduce_xor", with_axis("bbiii", wrong=0)),
    **every("lax", "argmax argmin", lax_arg),
    **every("lax", "cumsum cumprod cummax cummin", lax_running("iffc")),
    "lax.cumlogsumexp": lax_running("f"),
    "lax.sort": lax_sort,
    "lax.sort_key_val": sort_key_val,
    "lax.top_k": top_k,
    **every("lax", "approx_max_k approx_min_k", approximate),
    "lax.reduce": lax_reduce,
}  # fmt: skip

test_like_jax = values(TABLE)
