"""Drawn calls of lax's structural operations: slices, pads, gathers and scatters, products, convolutions, windows."""

import numpy as np

from conformance.drawn import NARROW, every, values
from conformance.harness import Of, S, call


def some_axes(d, ndim):
    return d.several(ndim, d.integer(0, ndim)) if d.chance(0.93) else d.pick((ndim,), (-ndim - 1,))


def axes_of(low=0, kinds="bifcn"):
    def draw(d):
        x = d.array(d.shape(low), kinds)
        return call(x, some_axes(d, len(x.shape)))

    return draw


def transpose(d):
    x = d.array(kinds="bifcn")
    ndim = len(x.shape)
    order = tuple(d.random.sample(range(ndim), ndim))
    return call(x, order if d.chance(0.95) else d.pick((0, 0), (-1,)))


def squeeze(d):
    x = d.array(kinds="bifcn")
    ones = [i - len(x.shape) * d.chance(0.3) for i, n in enumerate(x.shape) if n == 1]
    return call(x, tuple(ones) if d.chance(0.9) else (0,))


def expand_dims(d):
    x = d.array(kinds="bifcn")
    return call(x, d.pick((d.axis(len(x.shape), 1),), (0, -1), (), (0, 0), [1, 0]))


def broadcast(d):
    return call(d.array(), d.pick((), (2,), (2, 0), (1, 3), (-1,)))


def broadcast_in_dim(d):
    x = d.array()
    ndim, whole = len(x.shape), d.integer(0, 2)
    places = sorted(d.random.sample(range(ndim + whole), ndim))
    shape = [d.integer(0, 3) for _ in range(ndim + whole)]
    for place, n in zip(places, x.shape, strict=True):
        shape[place] = n if n != 1 or d.chance(0.5) else 3
    return call(x, tuple(shape), tuple(places) if d.chance(0.95) else tuple(places[1:]))


def concatenate(d):
    shape, dtype = d.shape(1), d.dtype("bifcn")
    axis = d.integer(0, len(shape) - 1)
    part = lambda: tuple(d.integer(0, 3) if i == axis else n for i, n in enumerate(shape))
    xs = [d.array(part(), dtype=dtype if d.chance(0.97) else d.dtype()) for _ in range(d.integer(1, 3))]
    return call(xs, axis if d.chance(0.9) else d.axis(len(shape)))


def pad(d):
    x = d.array(kinds="bifcn")
    config = [(d.integer(-2, 2), d.integer(-2, 2), d.integer(0, 2) - d.wrong()) for _ in x.shape]
    return call(x, d.array((), dtype=x.dtype) if d.chance(0.9) else S(0), config)


def stack(d):
    shape, dtype = d.shape(), d.dtype()
    xs = [d.array(shape, dtype=dtype if d.chance(0.97) else d.dtype()) for _ in range(d.integer(1, 3))]
    return call(xs, **d.some(axis=[d.axis(len(shape), 1)] * 2))


def split(d):
    x = d.array(d.shape(1))
    axis = d.axis(len(x.shape))
    n = x.shape[axis] if -len(x.shape) <= axis < len(x.shape) else 2
    cut = d.integer(0, n)
    return call(x, (cut, n - cut + d.wrong()), axis)


def bounds(d, n):
    start = d.integer(0, n)
    return start, d.integer(start, n + d.wrong()), d.pick(1, 1, 2, 3)


def slices(d):
    x = d.array(kinds="bifcn")
    found = [bounds(d, n) for n in x.shape]
    starts, stops, strides = (tuple(b[i] for b in found) for i in range(3))
    return call(x, starts, stops, *d.pick([], [strides]))


def slice_in_dim(d):
    x = d.array(d.shape(1))
    axis = d.axis(len(x.shape))
    return call(x, d.pick(0, 1, -1, None), d.pick(1, 2, -1, None, 9), **d.some(stride=[1, 2]), axis=axis)


def start(d, n):
    return d.pick(d.integer(-n - 1, n + 1), S(d.integer(-n, n)), d.array((), "i", low=-n, high=n))


def dynamic_slice(d):
    x = d.array(kinds="bifcn")
    sizes = tuple(d.integer(0, n) + d.wrong() for n in x.shape)
    return call(x, [start(d, n) for n in x.shape], sizes, **d.some(allow_negative_indices=[True, False]))


def dynamic_update_slice(d):
    x = d.array(kinds="bifcn")
    sizes = tuple(d.integer(0, n) + d.wrong() for n in x.shape)
    update = d.array(sizes, dtype=x.dtype if d.chance(0.95) else d.dtype())
    return call(x, update, [start(d, n) for n in x.shape], **d.some(allow_negative_indices=[True, False]))


def in_dim(d):
    x = d.array(d.shape(1))
    axis = d.axis(len(x.shape))
    return x, axis, x.shape[axis] if -len(x.shape) <= axis < len(x.shape) else 2


def dynamic_slice_in_dim(d):
    x, axis, n = in_dim(d)
    return call(x, start(d, n), d.integer(0, n), axis)


def dynamic_index_in_dim(d):
    x, axis, n = in_dim(d)
    return call(x, start(d, n), axis, *d.pick([], [True], [False]))


def index_in_dim(d):
    x, axis, n = in_dim(d)
    return call(x, d.integer(-n, max(n - 1, 0)) if d.chance(0.9) else n, axis, *d.pick([], [False]))


def update_in_dim(slice_):
    def draw(d):
        x, axis, n = in_dim(d)
        shape = list(x.shape)
        if -len(shape) <= axis < len(shape):
            shape[axis] = d.integer(0, n) if slice_ else 1
            if not slice_ and d.chance(0.5):
                del shape[axis]
        return call(x, d.array(tuple(shape), dtype=x.dtype), start(d, n), axis)

    return draw


def index_take(d):
    x = d.array(d.shape(1))
    axes = tuple(d.random.sample(range(len(x.shape)), d.integer(1, len(x.shape))))
    shape = d.pick((), (2,), (3,))
    return call(x, [d.array(shape, dtype="int32", low=-1, high=max(x.shape[a] - 1, 0)) for a in axes], axes)


MODES = [
    "clip",
    "fill",
    "promise_in_bounds",
    Of("lax.GatherScatterMode.CLIP"),
    Of("lax.GatherScatterMode.FILL_OR_DROP"),
]


def layout(d):
    """How an array is indexed: its shape, the shape of the indices and the windows, and the numbers of the axes."""
    shape = d.pick((4,), (3, 4), (2, 1, 3), (3, 0), (1, 2, 1, 3, 2))
    ndim = len(shape)
    batched = [d.integer(0, ndim - 1)] if ndim > 1 and d.chance(0.25) else []
    indexed = d.random.sample([i for i in range(ndim) if i not in batched], d.integer(1, ndim - len(batched)))
    outer = d.pick((), (2,), (3,), (2, 2), (0,)) if not batched else (shape[batched[0]], *d.pick((), (2,)))
    sizes = [1 if i in batched else d.integer(0 if i in indexed else n, n) for i, n in enumerate(shape)]
    collapsed = [i for i in indexed if sizes[i] == 1 and d.chance(0.7)]
    window = [n for i, n in enumerate(sizes) if i not in collapsed and i not in batched]
    places = sorted(d.random.sample(range(len(outer) + len(window)), len(window)))
    rest = iter(outer)
    inside = iter(window)
    whole = tuple(next(inside) if i in places else next(rest) for i in range(len(outer) + len(window)))
    high = max(shape)
    unsafe = d.chance(0.5)
    low, high = (-2, high + 1) if unsafe else (0, 0)
    index = d.array((*outer, len(indexed)), d.pick("i", "i", "i", "f") if d.wrong() else "i", low=low, high=high)
    return shape, index, sizes, whole, places, collapsed, indexed, batched, unsafe


def gather(d):
    shape, index, sizes, _, places, collapsed, indexed, batched, unsafe = layout(d)
    numbers = Of(
        "lax.GatherDimensionNumbers",
        (
            ("offset_dims", tuple(places)),
            ("collapsed_slice_dims", tuple(sorted(collapsed))),
            ("start_index_map", tuple(indexed)),
            ("operand_batching_dims", tuple(batched)),
            ("start_indices_batching_dims", (0,) * len(batched)),
        ),
    )
    options = d.some(mode=[m for m in MODES if m != "promise_in_bounds" or not unsafe], fill_value=[7])
    return call(d.array(shape, "bifcn"), index, numbers, tuple(sizes), **options)


def scatter(kinds="iffc"):
    def draw(d):
        shape, index, _, whole, places, collapsed, indexed, batched, unsafe = layout(d)
        numbers = Of(
            "lax.ScatterDimensionNumbers",
            (
                ("update_window_dims", tuple(places)),
                ("inserted_window_dims", tuple(sorted(collapsed))),
                ("scatter_dims_to_operand_dims", tuple(indexed)),
                ("operand_batching_dims", tuple(batched)),
                ("scatter_indices_batching_dims", (0,) * len(batched)),
            ),
        )
        options = d.some(mode=[m for m in MODES if m != "promise_in_bounds" or not unsafe])
        x = d.array(shape, kinds)
        # Elements alike, as it is open which of several updates of one place is the last.
        updates = d.array(
            whole if d.chance(0.95) else (7,), dtype=x.dtype if d.chance(0.95) else d.dtype(), low=1, high=1
        )
        return call(x, index, updates, numbers, **options)

    return draw


def scatter_apply(d):
    found = scatter("ff")(d)
    x, index, updates, numbers = found.args
    return call(x, index, lambda v: v * 2, numbers, update_shape=updates.shape, **dict(found.kwargs))


def dot_general(d):
    """Axes with letters: b stands for batches, c for what is contracted."""
    sizes = {name: d.pick(1, 2, 3, 3, 0) for name in "bcmn"}
    left, right = (
        d.random.sample(names, len(names))
        for names in d.pick(("bcm", "bcn"), ("cm", "cn"), ("c", "c"), ("bm", "b"), ("mbc", "cb"), ("m", "n"), ("", ""))
    )
    shared = [c for c in left if c in right]
    batch, summed = [c for c in shared if c == "b"], [c for c in shared if c != "b"]
    places = lambda names, order: tuple(order.index(c) for c in names)
    numbers = ((places(summed, left), places(summed, right)), (places(batch, left), places(batch, right)))
    if d.wrong():
        numbers = (((0,), (0,)), ((0,), (0,)))
    dtype, other = d.dtype("biffc"), d.dtype("if", stray=0)
    mixed = d.chance(0.1) and dtype not in NARROW
    x, y = (
        d.array(tuple(sizes[c] for c in order), dtype=t)
        for order, t in ((left, dtype), (right, other if mixed else dtype))
    )
    options = {} if mixed else {"preferred_element_type": ["float32", "float64", "int32"]}
    return call(x, y, numbers, **d.some(precision=[None, "highest"], **options))


def dot(d):
    n = d.pick(1, 3, 0)
    dtype = d.dtype("biffc")
    shapes = d.pick([(n,), (n,)], [(2, n), (n,)], [(2, n), (n, 3)], [(n,), (n, 2)], [(2, n), (3,)], [(), (n,)])
    return call(
        *[d.array(s, dtype=dtype if d.chance(0.9) else d.dtype()) for s in shapes],
        **d.some(precision=["highest"], preferred_element_type=["float32"]),
    )


def batch_matmul(d):
    n = d.pick(1, 3, 0)
    batch = d.pick((), (2,), (2, 1))
    dtype = d.dtype("iffc")
    return call(d.array((*batch, 2, n), dtype=dtype), d.array((*batch, n, d.pick(1, 3)), dtype=dtype))


def ragged_dot(d):
    k, n, dtype = d.pick(1, 2, 3), d.pick(1, 3), d.dtype("ff")
    sizes = d.pick([2, 2], [1, 0, 3], [4], [1, 2])
    return call(
        d.array((4, k), dtype=dtype),
        d.array((len(sizes), k, n), dtype=dtype),
        np.array(sizes, "int32"),
        **d.some(preferred_element_type=["float32"]),
    )


PADDINGS = ["SAME", "VALID", "SAME_LOWER", "odd"]


def convolution(d):
    """Arguments common to convolutions: both arrays and the numbers of spatial axes, groups and batch."""
    spatial = d.pick(1, 1, 2, 0)
    groups, batches = d.pick((1, 1), (1, 1), (2, 1), (1, 2))
    batch, out, inner = 2, 2, d.pick(1, 2)
    size = tuple(d.pick(1, 3, 4) for _ in range(spatial))
    window = tuple(d.pick(1, 2, 3) for _ in range(spatial))
    dtype = d.dtype("iffc")
    x = d.array((batch, inner * groups, *size), dtype=dtype)
    w = d.array((out, inner + d.wrong(), *window), dtype=dtype if d.chance(0.93) else d.dtype("f"))
    padding = d.pick(
        *PADDINGS[:3],
        [(d.integer(-1, 2), d.integer(0, 2)) for _ in range(spatial)],
        PADDINGS[3] if d.wrong() else "SAME",
    )
    return x, w, tuple(d.pick(1, 1, 2) for _ in range(spatial)), padding, spatial, groups, batches


def conv_general_dilated(d):
    x, w, strides, padding, spatial, groups, batches = convolution(d)
    dilations = [tuple(d.pick(1, 2, 3) for _ in range(spatial))]
    options = d.some(rhs_dilation=dilations, precision=[None, "highest"], preferred_element_type=["float32"])
    if type(padding) is list and d.chance(0.3):
        options["lhs_dilation"] = dilations[0]
    return call(x, w, strides, padding, feature_group_count=groups, batch_group_count=batches, **options)


def conv(d):
    x, w, strides, *_ = convolution(d)
    return call(x, w, strides, d.pick("SAME", "VALID"))


def conv_with_general_padding(d):
    x, w, strides, padding, spatial, _, _ = convolution(d)
    dilation = tuple(d.pick(1, 2) for _ in range(spatial))
    return call(x, w, strides, padding, (1,) * spatial, dilation)


def conv_transpose(d):
    n = d.pick(1, 2)
    letters = ("NHC", "HIO", "NHC") if n == 1 else ("NHWC", "HWIO", "NHWC")
    dtype = d.dtype("ff")
    x = d.array((1, *(d.pick(1, 3) for _ in range(n)), 2), dtype=dtype)
    w = d.array((*(d.pick(1, 2, 3) for _ in range(n)), 2, 2), dtype=dtype)
    options = {
        "rhs_dilation": [(2,) * n],
        "dimension_numbers": [letters],
        "transpose_kernel": [True],
        "use_consistent_padding": [True],
    }
    return call(x, w, tuple(d.pick(1, 2) for _ in range(n)), d.pick("SAME", "VALID", [(1, 1)] * n), **d.some(**options))


def patches(d):
    x, _, strides, padding, spatial, _, _ = convolution(d)
    window = tuple(d.pick(1, 2) for _ in range(spatial))
    return call(d.array(x.shape, "ff"), window, strides, padding, **d.some(rhs_dilation=[(2,) * spatial]))


def conv_local(d):
    length, window, inner, out, dtype = d.pick(3, 4), d.pick(1, 2), d.pick(1, 2), 2, d.dtype("ff")
    places = length - window + 1
    return call(
        d.array((1, inner, length), dtype=dtype),
        d.array((out, inner * window, places), dtype=dtype),
        (1,),
        d.pick("VALID", [(0, 0)]),
        (window,),
    )


def window(d):
    x = d.array(d.shape(1), "iiff")
    each = lambda *choices: tuple(d.pick(*choices) for _ in x.shape)
    options = {"base_dilation": [each(1, 2)], "window_dilation": [each(1, 2)]}
    padding = d.pick("SAME", "VALID", [(d.integer(0, 2), d.integer(0, 2)) for _ in x.shape])
    chosen = {"window_strides": each(1, 2), "padding": padding, **d.some(**options)}
    return x, each(1, 2, 3) if d.chance(0.95) else (1,), chosen


def reduce_window(d):
    x, size, options = window(d)
    name, first = d.pick(("lax.add", 0), ("lax.max", -3), ("lax.min", 3), ("lax.mul", 1))
    return call(x, d.pick(S(first), d.array((), dtype=x.dtype, low=0, high=0)), Of(name), size, **options)


def window_shape(d):
    x, size, options = window(d)
    strides, padding = options.pop("window_strides"), options.pop("padding")
    return call(x.shape, size, strides, padding if type(padding) is list else [(0, 1)] * len(x.shape), **options)


def pads(d):
    n = d.integer(1, 2)
    each = lambda *choices: tuple(d.pick(*choices) for _ in range(n))
    return call(each(1, 3, 4, 7), each(1, 2, 3), each(1, 2), d.pick(*PADDINGS))


def conv_shape(d):
    x, w, strides, _, spatial, *_ = convolution(d)
    return call(x.shape, w.shape, strides, [(0, 1)] * spatial)


LETTERS = [("NCH", "OIH", "NCH"), ("NHC", "HIO", "NHC"), ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")]


def conv_numbers(d):
    letters = d.pick(None, *LETTERS)
    ndim = 3 if letters is None else len(letters[0])
    return call((1,) * ndim, (1,) * (ndim if d.chance(0.9) else ndim + 1), letters)


def conv_general_shape(d):
    n = d.pick(1, 2)
    letters = LETTERS[n]
    size = tuple(d.pick(3, 4) for _ in range(n))
    return call(
        (2, *size, 3),
        (*(d.pick(1, 2) for _ in range(n)), 3, 2),
        (1,) * n,
        d.pick("SAME", "VALID", [(0, 1)] * n),
        letters,
    )


def bits(d):
    key = np.array([1, 2, 3, 4], "uint32")
    return call(key, d.shape(), **d.some(dtype=["uint32", "uint8", "uint16", "float32"]))


TABLE = {
    "lax.transpose": transpose,
    "lax.rev": axes_of(),
    "lax.squeeze": squeeze,
    "lax.expand_dims": expand_dims,
    "lax.broadcast": broadcast,
    "lax.broadcast_in_dim": broadcast_in_dim,
    "lax.broadcast_to_rank": lambda d: call(d.array(), d.integer(0, 6)),
    "lax.broadcast_like": lambda d: call(*[d.array(s) for s in d.shapes(2)]),
    "lax.collapse": lambda d: (lambda x: call(x, d.axis(len(x.shape)), *d.pick([], [d.axis(len(x.shape), 1)])))(d.array(d.shape(1))),
    "lax.concatenate": concatenate,
    "lax.pad": pad,
    "lax.stack": stack,
    "lax.unstack": lambda d: (lambda x: call(x, *d.pick([], [d.axis(len(x.shape))])))(d.array(d.shape(1))),
    "lax.split": split,
    "lax.tile": lambda d: (lambda x: call(x, tuple(d.integer(0, 2) for _ in x.shape) if d.chance(0.93) else (2,)))(d.array()),
    "lax.slice": slices,
    "lax.slice_in_dim": slice_in_dim,
    "lax.dynamic_slice": dynamic_slice,
    "lax.dynamic_update_slice": dynamic_update_slice,
    "lax.dynamic_slice_in_dim": dynamic_slice_in_dim,
    "lax.dynamic_index_in_dim": dynamic_index_in_dim,
    "lax.index_in_dim": index_in_dim,
    "lax.dynamic_update_slice_in_dim": update_in_dim(True),
    "lax.dynamic_update_index_in_dim": update_in_dim(False),
    "lax.index_take": index_take,
    "lax.gather": gather,
    **every("lax", "scatter scatter_min scatter_max", scatter("iff")),
    **every("lax", "scatter_add scatter_sub scatter_mul", scatter()),
    "lax.scatter_apply": scatter_apply,
    "lax.dot_general": dot_general,
    "lax.dot": dot,
    "lax.batch_matmul": batch_matmul,
    "lax.ragged_dot": ragged_dot,
    "lax.conv_general_dilated": conv_general_dilated,
    "lax.conv": conv,
    "lax.conv_with_general_padding": conv_with_general_padding,
    "lax.conv_transpose": conv_transpose,
    "lax.conv_general_dilated_patches": patches,
    "lax.conv_general_dilated_local": conv_local,
    "lax.conv_shape_tuple": conv_shape,
    "lax.conv_general_shape_tuple": conv_general_shape,
    "lax.conv_transpose_shape_tuple": conv_general_shape,
    "lax.conv_dimension_numbers": conv_numbers,
    "lax.conv_general_permutations": lambda d: call(d.pick(*LETTERS, ("NHC", "HIO", "NCX"))),
    "lax.reduce_window": reduce_window,
    "lax.reduce_window_shape_tuple": window_shape,
    "lax.padtype_to_pads": pads,
    "lax.rng_bit_generator": bits,
    "lax.associative_scan": lambda d: (lambda x: call(d.pick(Of("lax.add"), Of("lax.max"), Of("numpy.multiply")), x, **d.pick({}, {"axis": d.integer(-len(x.shape), len(x.shape) - 1)}, {"reverse": True, "axis": d.integer(0, len(x.shape) - 1)})))(d.array(d.shape(1), "iiff")),
    "lax.shape_as_value": lambda d: call(d.shape()),
}  # fmt: skip

test_like_jax = values(TABLE)
