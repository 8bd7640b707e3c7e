"""Drawn calls of what makes arrays, rearranges and joins them, and takes elements out of them; and of questions of dtypes."""

import numpy as np

from conformance.drawn import every, values
from conformance.harness import Of, S, call


def plain(low=0, kinds="bifcn"):
    return lambda d: call(d.number() if d.chance(0.05) else d.array(d.shape(low), kinds))


def with_axis(low=1, kinds="bifc", none=False, several=False):
    """An array and `axis`, by position or by name, or none."""

    def draw(d):
        x = d.array(d.shape(low), kinds)
        ndim = len(x.shape)
        axis = d.axes(ndim) if several and d.chance(0.6) else d.axis(ndim)
        axis = None if none and d.chance(0.2) else axis
        return d.pick(call(x), call(x, axis), call(x, axis=axis))

    return draw


def pieces(d, axis, shape, **values):
    """Arrays that differ along one axis alone, of one dtype or of several."""
    dtype, found = d.dtype(), []
    for _ in range(d.integer(1, 3)):
        parts = list(shape)
        if -len(shape) <= axis < len(shape):
            parts[axis] = d.integer(0, 3)
        found.append(
            d.array(d.shape() if d.chance(0.03) else tuple(parts), dtype=dtype if d.chance(0.7) else d.dtype("bifcn"))
        )
    return found


def joined(d):
    shape = d.shape(1)
    axis = d.axis(len(shape))
    xs = pieces(d, axis, shape)
    return call(xs, **d.some(dtype=[d.dtype()]), **d.pick({"axis": axis}, {"axis": axis}, {}))


def concat(d):
    shape = d.shape(1)
    axis = d.axis(len(shape))
    return call(tuple(pieces(d, axis, shape)), axis=axis)


def stacked(d):
    xs = d.operands(1) * d.integer(1, 3)
    xs = [d.array(xs[0].shape, dtype=d.pick(xs[0].dtype, d.dtype())) for _ in xs]
    return call(d.pick(xs, tuple(xs)), **d.some(axis=[d.axis(len(xs[0].shape), 1)] * 2, dtype=[d.dtype()]))


def stacks(d):
    shape = d.shape()
    xs = [d.array(shape, dtype=d.dtype()) for _ in range(d.integer(1, 3))]
    return call(xs)


def append(d):
    shape = d.shape(1)
    axis = d.axis(len(shape))
    x, y = (pieces(d, axis, shape) * 2)[:2]
    return d.pick(call(x, y, axis), call(x, y, axis=axis), call(x, d.array()))


def split(fixed=None):
    def draw(d):
        x = d.array(d.shape(1) if fixed is None else d.full(fixed + 1))
        where = d.pick(1, 2, 3, [1], [1, 2], [0, 5], [-1], (2, 1), 0)
        axis = d.pick([], [d.axis(len(x.shape))]) if fixed is None else []
        return call(x, where, *axis)

    return draw


def broadcast_to(d):
    small, whole = d.shapes(2)
    return call(d.array(small), whole)


def several(d):
    return call(*d.operands(d.integer(1, 3)))


def reshape(d):
    x = d.array()
    n = int(np.prod(x.shape))
    shape = d.pick((n,), -1, (1, n), (n, 1, 1), (-1, 1), x.shape[::-1], (2, -1), (3, 2), (n, -1), ())
    return call(x, shape, **d.some(order=["C", "F", "K"], copy=[True, None]))


def lax_reshape(d):
    x = d.array()
    n = int(np.prod(x.shape))
    shape = d.pick((n,), (1, n), (n, 1, 1), x.shape[::-1], (3, 2), ())
    return call(x, shape, **d.some(dimensions=[None, tuple(range(len(x.shape)))[::-1]]))


def transposed(d):
    x = d.array()
    ndim = len(x.shape)
    return call(x) if d.chance(0.3) else call(x, d.several(ndim, ndim) if d.chance(0.95) else (0,))


def moved(d):
    x = d.array()
    ndim = len(x.shape)
    if d.chance(0.5) or not ndim:
        return call(x, d.axis(ndim), d.axis(ndim))
    count = d.integer(0, ndim)
    return call(x, d.several(ndim, count), d.several(ndim, count))


def swapped(d):
    x = d.array(d.shape(1))
    return call(x, d.axis(len(x.shape)), d.axis(len(x.shape)))


def rollaxis(d):
    x = d.array(d.shape(1))
    return call(x, d.axis(len(x.shape)), **d.some(start=[d.axis(len(x.shape), 1)]))


def expand(d):
    x = d.array(kinds="bifcn")
    return call(x, d.pick(d.axis(len(x.shape), 1), (0, -1), (0, 0), (), [1, 0]))


def squeezed(d):
    x = d.array(kinds="bifcn")
    ones = tuple(i for i, n in enumerate(x.shape) if n == 1)
    return d.pick(call(x), call(x, ones), call(x, axis=ones[0] if ones else 0))


def flipped(d):
    x = d.array(kinds="bifcn")
    return call(x, **d.some(axis=[d.axes(len(x.shape))] * 2))


def rolled(d):
    x = d.array()
    ndim = len(x.shape)
    shift = d.pick(1, -2, 5, S(1), d.array((), dtype="int32"))
    if d.chance(0.3) and ndim:
        axes = d.several(ndim, d.integer(1, ndim))
        return call(x, tuple(d.integer(-2, 2) for _ in axes), axes)
    return call(x, shift, **d.some(axis=[d.axis(ndim)]))


def rot90(d):
    x = d.array(d.shape(2))
    return call(x, **d.some(k=[0, 1, 2, 3, -1, 6], axes=[(1, 0), d.several(len(x.shape), 2), (0, 0)]))


def resized(d):
    return call(d.array(), d.pick((2, 3), 4, (0,), (), (2, 2, 2), -1, (7,)))


def repeated(d):
    x = d.array()
    ndim = len(x.shape)
    axis = d.axis(ndim) if ndim else None
    n = x.shape[axis] if axis is not None and -ndim <= axis < ndim else int(np.prod(x.shape))
    repeats = d.pick(2, 0, [2], [d.integer(0, 3) for _ in range(n)], d.array((n,), dtype="int32", low=0, high=2))
    options = {"axis": axis} if axis is not None and d.chance(0.8) else {}
    return call(x, repeats, **options, **d.some(total_repeat_length=[3, 7]))


def tiled(d):
    return call(d.array(), d.pick(2, (2,), (2, 1), (1, 2, 2), (), 0, (0, 1)))


def triangle(d):
    return call(d.array(d.shape(2) if d.chance(0.95) else (3,)), **d.some(k=[0, 1, -1, 5]))


def diag(d):
    return call(d.array(d.pick((3,), (0,), (2, 3), (3, 1), (3, 3), (0, 2), (2, 1, 3), ())), **d.some(k=[0, 1, -1, 4]))


def diagonal(**more):
    def draw(d):
        x = d.array(d.shape(2))
        ndim = len(x.shape)
        return call(x, **d.some(offset=[1, -1, 3], axis1=[d.axis(ndim)], axis2=[d.axis(ndim)], **more))

    return draw


def padded(d):
    x = d.array()
    ndim = len(x.shape)
    width = d.pick(1, 0, (1, 2), [(d.integer(0, 2), d.integer(0, 2)) for _ in range(ndim)], -1, ((1, 1), (0, 2)))
    mode = d.pick(
        "constant",
        "edge",
        "reflect",
        "symmetric",
        "wrap",
        "linear_ramp",
        "maximum",
        "minimum",
        "mean",
        "median",
        "empty",
        "odd",
    )
    options = {}
    if mode == "constant":
        options = d.some(constant_values=[S(2), 1.5, (1, 2), d.array((), d.pick("i", "f"))])
    elif mode == "linear_ramp":
        options = d.some(end_values=[3, (1, 2)])
    elif mode in ("maximum", "minimum", "mean", "median"):
        options = d.some(stat_length=[1, 2, None])
    elif mode in ("reflect", "symmetric"):
        options = d.some(reflect_type=["even", "odd"])
    return call(x, width, mode=mode, **options)


def blocks(d):
    shape = d.shape(1, 2)
    return call(
        d.pick([d.array(shape), d.array(shape)], [[d.array(shape)], [d.array(shape)]], d.array(shape), [[1, 2], [3, 4]])
    )


def indices(d, shape, n, outside=0.3):
    reach = n + 2 if d.chance(outside) else n - 1
    return d.array(
        shape, d.pick("i", "i", "i", "i", "f") if d.chance(0.1) else "i", low=-max(reach, 0), high=max(reach, 0)
    )


MODES = ["clip", "wrap", "fill", "raise", "promise_in_bounds", "nonsense"]


def taken(d):
    x = d.array(kinds="bifcn")
    ndim = len(x.shape)
    axis = d.axis(ndim) if ndim else 0
    n = x.shape[axis] if -ndim <= axis < ndim else int(np.prod(x.shape))
    index = d.pick(d.pick(0, -1, 7, S(1)), indices(d, d.pick((), (2,), (2, 2), (0,)), n))
    options = {"axis": [axis] * 3, "mode": MODES if d.wrong() else MODES[:3], "fill_value": [7]}
    return call(x, index, **d.some(**options, indices_are_sorted=[False]))


def along_axis(d):
    x = d.array(d.full(1))
    axis = d.axis(len(x.shape))
    shape, n = list(x.shape), 1
    if -len(shape) <= axis < len(shape):
        n = shape[axis]
        shape[axis] = d.integer(1, 3)
        shape = [1 if d.chance(0.1) else k for k in shape]
    return x, indices(d, tuple(shape), n), axis


def take_along(d):
    x, index, axis = along_axis(d)
    return call(x, index, axis, **d.some(mode=["clip", "fill", "promise_in_bounds"], fill_value=[5]))


def put_along(d):
    x, index, axis = along_axis(d)
    values = d.pick(d.array(index.shape), d.number(), d.array((), dtype=x.dtype))
    return call(x, index, values, axis, inplace=False, **d.some(mode=["clip", "drop"]))


def put(d):
    x = d.array(d.full())
    n = int(np.prod(x.shape))
    index = indices(d, d.pick((), (2,), (2, 2)), n)
    return call(
        x, index, d.pick(d.number(), d.array((2,)), d.array((0,))), inplace=False, **d.some(mode=["clip", "wrap"])
    )


def place(d):
    x = d.array()
    return call(x, d.array(x.shape, d.pick("b", "i")), d.pick(d.array((2,)), d.number(), d.array((0,))), inplace=False)


def fill_diagonal(d):
    x = d.array(d.pick((3, 3), (2, 3), (4, 2), (2, 2, 2), (3,), (2, 3, 2), (0, 0)))
    return call(x, d.pick(d.number(), d.array((2,)), d.array(())), inplace=False, **d.some(wrap=[True, False]))


def compress(d):
    x = d.array()
    ndim = len(x.shape)
    axis = d.axis(ndim) if ndim else 0
    mask = d.pick([True, False], [False, True, True], [0, 1], d.array((d.integer(0, 3),), "b"))
    options = {"size": d.pick(1, 3, 5), **d.some(fill_value=[3])} if d.chance(0.7) else {}
    return call(mask, x, **({"axis": axis} if d.chance(0.7) else {}), **options)


def extract(d):
    x = d.array()
    options = {"size": d.pick(1, 3, 5), **d.some(fill_value=[3])} if d.chance(0.7) else {}
    return call(d.array(x.shape, d.pick("b", "i"), whole=True), x, **options)


def delete(d):
    x = d.array()
    ndim = len(x.shape)
    what = d.pick(
        0,
        -1,
        1,
        [0, 1],
        slice(0, 2),
        slice(None, None, 2),
        [0],
        9,
        [True, False, True],
        d.array((2,), dtype="int32", low=0, high=0),
    )
    return call(
        x,
        what,
        **d.some(axis=[d.axis(ndim)] * 2),
        **d.some(assume_unique_indices=[True] if type(what) is list else [False]),
    )


def insert(d):
    x = d.array()
    ndim = len(x.shape)
    return call(
        x,
        d.pick(0, 1, -1, [0, 1], [1], slice(0, 2), 9),
        d.pick(d.number(), [1, 2], d.array(())),
        **d.some(axis=[d.axis(ndim)] * 2),
    )


def packed(d):
    x = d.array(d.shape(1), d.pick("b", "i"), whole=True)
    return call(x, **d.some(axis=[d.axis(len(x.shape))] * 3, bitorder=["big", "little", "odd"]))


def unpacked(d):
    x = d.array(d.shape(1), dtype="uint8" if d.chance(0.95) else "int32", low=0, high=255)
    return call(x, **d.some(axis=[d.axis(len(x.shape))] * 3, bitorder=["big", "little"], count=[3, 9, -1, 20]))


def trimmed(d):
    # Of complex numbers jax looks at the real parts alone.
    x = d.array(d.pick((4,), (3,), (0,), (1,), (2, 3)), dtype=d.dtype("bif", stray=0), whole=True)
    return call(x, **d.some(trim=["f", "b", "fb"]))


def ravel_index(d):
    index = [d.array(d.pick((), (3,)), "i", low=0, high=2) for _ in range(2)]
    return call(index, d.pick((3, 4), (2, 2), (7, 1)), **d.some(mode=["clip", "wrap", "raise"], order=["C", "F"]))


def unravel_index(d):
    return call(d.pick(d.array(kinds="i", low=-9, high=9), S(4)), d.pick((3, 4), (2, 2, 3), 5, ()))


def arange(d):
    start, stop = (d.pick(0, 1, -2, 5, 2.5, -0.5, 7, True, np.int8(3)) for _ in range(2))
    options = d.some(dtype=[d.dtype("ifc"), float])
    return d.pick(
        call(stop, **options), call(start, stop, **options), call(start, stop, d.pick(1, 2, -1, 0.5, 0), **options)
    )


def spaced(positive=False, **more):
    def draw(d):
        ends = [
            d.pick(
                S(1),
                S(2.5),
                S(4.0),
                d.array((), "if", low=1, high=3),
                d.array(d.pick((2,), (2, 3)), "iffc", low=1, high=3),
            )
            for _ in range(2)
        ]
        if not positive and d.chance(0.3):
            ends[0] = S(-2)
        options = {
            "num": [0, 1, 2, 5, -1],
            "endpoint": [True, False],
            "dtype": [d.dtype("ifc")],
            "axis": [0, -1],
            **more,
        }
        return call(*ends, **d.some(**options))

    return draw


def filled(*values):
    def draw(d):
        shape = d.pick(d.shape(), 3, [2, 1], (-1,), 2.5)
        fill = [d.pick(d.number(), d.array(()), d.array((3,)))] if values else []
        return call(shape, *fill, **d.some(dtype=[d.dtype("bifcn"), int, float, bool, complex]))

    return draw


def filled_like(*values):
    def draw(d):
        fill = [d.pick(d.number(), d.array(()))] if values else []
        return call(
            d.pick(d.array(kinds="bifcn"), d.number()), *fill, **d.some(dtype=[d.dtype("bifcn")], shape=[d.shape(), 2])
        )

    return draw


def eye(d):
    return call(d.pick(0, 1, 3, 4, -1), *d.pick([], [3], [2], [0]), **d.some(k=[1, -1, 5], dtype=[d.dtype("bifcn")]))


def array(d):
    value = d.pick(
        d.array(kinds="bifcn"),
        d.number(),
        [1, 2.5],
        [[1, 2], [3, 4]],
        [True, 2],
        [],
        [d.array((2,)), d.array((2,))],
        [S(1), d.array(())],
        (1, 2j),
        [[1], [2, 3]],
        None,
        "text",
    )
    return value, d.some(dtype=[d.dtype("bifcn"), float, bool, "nonsense"])


def make_array(d):
    value, options = array(d)
    return call(value, **options, **d.some(ndmin=[0, 1, 3], copy=[True, False]))


def as_array(d):
    value, options = array(d)
    return call(value, **options, **d.some(copy=[True, None]))


def meshgrid(d):
    return call(
        *[d.array((d.integer(0, 3),)) for _ in range(d.integer(0, 3))],
        **d.some(indexing=["ij", "xy", "x"], sparse=[True]),
    )


def types(d):
    return [
        d.pick(d.dtype("bifcn"), d.array((2,)), d.array(()), d.number(), d.pick(int, float, bool, complex))
        for _ in range(d.integer(1, 3))
    ]


def names(d):
    return d.pick(d.dtype("bifcn"), int, float, complex, np.float32, np.int8, np.dtype("uint16"))


#: Abstract classes of dtypes, by their names in NumPy.
CLASSES = [np.integer, np.floating, np.inexact, np.number, np.generic, np.signedinteger, np.complexfloating, np.bool_]


def along(d):
    x = d.array(d.shape(1), dtype=d.dtype("iffc", stray=0))
    return call(d.pick(Of("numpy.sum"), lambda v: v * 2, lambda v: v[:1]), d.axis(len(x.shape)), x)


def over(d):
    x = d.array(d.shape(1))
    ndim = len(x.shape)
    return call(Of("numpy.sum"), x, d.pick(d.axis(ndim), d.several(ndim, d.integer(0, ndim))))


def buffer(d):
    return call(bytes(range(16)), **d.some(dtype=["int32", "uint8", "float32"], count=[1, 2], offset=[4, 8]))


SHAPES = {
    **every("numpy", "atleast_1d atleast_2d atleast_3d", several),
    **every("numpy", "copy ravel ndim size shape", plain()),
    **every("numpy", "matrix_transpose fliplr flipud", plain(1)),
    "numpy.diagflat": lambda d: call(d.array(), **d.some(k=[1, -1])),
    "numpy.astype": lambda d: call(d.array(kinds="bifcn", low=0, high=3), names(d), **d.some(copy=[True])),
    **every("numpy", "concatenate", joined),
    "numpy.concat": concat,
    "numpy.stack": stacked,
    **every("numpy", "hstack vstack dstack column_stack", stacks),
    "numpy.append": append,
    **every("numpy", "split array_split", split()),
    "numpy.hsplit": split(0), "numpy.vsplit": split(1), "numpy.dsplit": split(2),
    "numpy.unstack": lambda d: call(d.array(), **d.some(axis=[0, -1, 1])),
    "numpy.broadcast_to": broadcast_to,
    "numpy.broadcast_arrays": several,
    **every("numpy", "broadcast_shapes", lambda d: call(*d.shapes(d.integer(0, 3)))),
    **every("lax", "broadcast_shapes", lambda d: call(*d.shapes(d.integer(1, 3)))),
    "numpy.reshape": reshape,
    **every("numpy", "transpose permute_dims", transposed),
    "numpy.moveaxis": moved,
    "numpy.swapaxes": swapped,
    "numpy.rollaxis": rollaxis,
    "numpy.expand_dims": expand,
    "numpy.squeeze": squeezed,
    "numpy.flip": flipped,
    "numpy.roll": rolled,
    "numpy.rot90": rot90,
    "numpy.resize": resized,
    "numpy.repeat": repeated,
    "numpy.tile": tiled,
    **every("numpy", "tril triu", triangle),
    "numpy.diag": diag,
    "numpy.diagonal": diagonal(),
    "numpy.trace": diagonal(dtype=["float32", "int32"]),
    "numpy.pad": padded,
    "numpy.block": blocks,
    "numpy.take": taken,
    "numpy.take_along_axis": take_along,
    "numpy.put_along_axis": put_along,
    "numpy.put": put,
    "numpy.place": place,
    "numpy.fill_diagonal": fill_diagonal,
    "numpy.compress": compress,
    "numpy.extract": extract,
    "numpy.delete": delete,
    "numpy.insert": insert,
    "numpy.packbits": packed,
    "numpy.unpackbits": unpacked,
    "numpy.trim_zeros": trimmed,
    "numpy.ravel_multi_index": ravel_index,
    "numpy.unravel_index": unravel_index,
    "numpy.vander": lambda d: call(d.array(d.pick((3,), (1,), (0,), (2, 2))), **d.some(N=[0, 2, 4], increasing=[True])),
    "numpy.apply_along_axis": along,
    "numpy.apply_over_axes": over,
}  # fmt: skip

CREATION = {
    "numpy.arange": arange,
    "numpy.linspace": spaced(retstep=[True]),
    "numpy.logspace": spaced(base=[2.0, 10]),
    "numpy.geomspace": spaced(positive=True),
    **every("numpy", "zeros ones empty", filled()),
    "numpy.full": filled(0),
    **every("numpy", "zeros_like ones_like empty_like", filled_like()),
    "numpy.full_like": filled_like(0),
    **every("numpy", "eye tri", eye),
    "numpy.identity": lambda d: call(d.pick(0, 1, 3), **d.some(dtype=[d.dtype("bifcn")])),
    "numpy.array": make_array,
    "numpy.asarray": as_array,
    "numpy.meshgrid": meshgrid,
    "numpy.indices": lambda d: call(d.pick((2, 3), (0,), (), (3,)), **d.some(dtype=["int8", "float32"], sparse=[True])),
    "numpy.ix_": lambda d: call(*[d.array((d.integer(0, 3),), d.pick("i", "i", "f")) for _ in range(d.integer(0, 3))]),
    "numpy.diag_indices": lambda d: call(d.pick(0, 1, 3, -1), **d.some(ndim=[1, 2, 3, -1])),
    "numpy.diag_indices_from": lambda d: call(d.array(d.pick((3, 3), (2, 2, 2), (2, 3), (3,)))),
    **every("numpy", "tril_indices triu_indices", lambda d: call(d.pick(0, 1, 3, 4), **d.some(k=[1, -1], m=[2, 5]))),
    **every("numpy", "tril_indices_from triu_indices_from", lambda d: call(d.array(d.shape(1, 3)), **d.some(k=[1, -1]))),
    "numpy.mask_indices": lambda d: call(d.pick(1, 3), lambda m, k: m.T if k is None else m, **d.some(k=[1], size=[2, 12])),
    **every("numpy", "bartlett blackman hamming hanning", lambda d: call(d.pick(0, 1, 2, 5, -1))),
    "numpy.kaiser": lambda d: call(d.pick(0, 1, 2, 5), d.pick(0.0, 2, 14.0, S(3.0))),
    "numpy.fromfunction": lambda d: call(lambda *xs: sum(xs), d.pick((2, 3), (3,), ()), **d.some(dtype=["int32", "float32"])),
    "numpy.fromiter": lambda d: call((1, 2, 3), d.dtype("if"), **d.some(count=[2])),
    "numpy.fromstring": lambda d: call("1 2 3", sep=" ", **d.some(dtype=["int32", "float32"])),
    "numpy.frombuffer": buffer,
    "lax.iota": lambda d: call(d.dtype("bifcn"), d.pick(0, 1, 4, -1)),
    "lax.broadcasted_iota": lambda d: (lambda s: call(d.dtype("ifc"), s, d.axis(len(s))))(d.shape(1)),
    "lax.full": lambda d: call(d.shape(), d.pick(d.number(), d.array(())), *d.pick([], [d.dtype("bifcn")])),
    "lax.full_like": lambda d: call(d.array(kinds="bifcn"), d.number(), **d.some(dtype=[d.dtype()], shape=[d.shape()])),
    "lax.empty": lambda d: call(d.shape(), d.dtype("bifcn")),
    "lax.dtype": plain(),
    "lax.reshape": lax_reshape,
}  # fmt: skip

DTYPES = {
    "numpy.result_type": lambda d: call(*types(d)),
    "dtypes.result_type": lambda d: call(*types(d), **d.some(return_weak_type_flag=[True, False])),
    "numpy.promote_types": lambda d: call(names(d), names(d)),
    **every("numpy", "issubdtype", lambda d: call(names(d), d.pick(*CLASSES, names(d)))),
    **every("dtypes", "issubdtype", lambda d: call(names(d), d.pick(*CLASSES, names(d)))),
    "numpy.isdtype": lambda d: call(names(d), d.pick("bool", "integral", "real floating", "numeric", ("bool", "complex floating"), "nonsense")),
    "numpy.can_cast": lambda d: call(names(d), names(d), **d.some(casting=["no", "equiv", "safe", "same_kind", "unsafe"])),
    "numpy.iterable": lambda d: call(d.pick(d.array(), d.number(), [1])),
    "dtypes.canonicalize_dtype": lambda d: call(d.pick(names(d), "float64", "int64", "complex128", "nonsense")),
    "dtypes.scalar_type_of": lambda d: call(d.pick(d.array(), d.number())),
    "dtypes.itemsize_bits": lambda d: call(names(d)),
}  # fmt: skip

TABLE = SHAPES | CREATION | DTYPES

test_like_jax = values(TABLE)
