"""Drawn calls of the methods of arrays, of x.at[index], and of ufuncs."""

import jax
import numpy as np

import judge
from conformance import test_drawn_elementwise, test_drawn_linalg, test_drawn_reductions, test_drawn_shapes
from conformance.drawn import every, values
from conformance.harness import A, S, call
from conformance.test_array_methods import DEVICES, PUBLIC
from conformance.test_ufuncs import NAMES as UFUNCS

# --- methods of arrays

NUMPY = (
    test_drawn_elementwise.TABLE | test_drawn_linalg.TABLE | test_drawn_reductions.TABLE | test_drawn_shapes.TABLE
)  # fmt: skip


def as_function(name):
    """A method whose calls are those of the function, with the array before the dot."""
    return {f"method.{name}": NUMPY[f"numpy.{name}"]}


def alone(kinds="bifcn"):
    return lambda d: call(d.array(kinds=kinds))


def compress(d):
    found = NUMPY["numpy.compress"](d)
    condition, x = found.args
    return call(x, condition, **dict(found.kwargs))


def view(d):
    x = d.array(d.pick((4,), (3, 4), (2, 2), (), (3, 1)), "ifnbc")
    return call(x, *d.pick([], [d.dtype("ifnb")], [d.dtype("ifc")], [None]))


def astype(d):
    return call(
        d.array(kinds="bifcn", low=0, high=3),
        d.pick(d.dtype("bifcn"), float, int, bool, complex),
        **d.some(copy=[True, False]),
    )


def reshape(d):
    x = d.array()
    n = int(np.prod(x.shape))
    sizes = d.pick((n,), (-1,), (1, n), ((n, 1),), (x.shape,), (2, -1), ([n],), (), (3, 2))
    return call(x, *sizes, **d.some(order=["C", "F", "A", "K"]))


def transpose(d):
    x = d.array()
    order = d.several(len(x.shape), len(x.shape))
    return d.pick(call(x), call(x, *order), call(x, order), call(x, None))


def item(d):
    x = d.array(d.pick((), (1,), (1, 1), (3,), (2, 3), (0,)), "biffc")
    ndim = len(x.shape)
    return call(x, *d.pick([], [], [d.integer(-1, 2)], [d.integer(-1, 2) for _ in range(ndim)]))


def clip(d):
    x, low, high = d.operands(3, "bif")
    if not isinstance(x, A):
        x = d.array(kinds="f")
    return d.pick(call(x, low, high), call(x, low), call(x, max=high), call(x, min=low, max=high), call(x))


def byteswap(d):
    return call(d.array(kinds="bifcn"), **d.some(inplace=[True, False]))


def flatten(d):
    return call(d.array(), **d.some(order=["C", "F", "A", "K"]))


def total(name):
    def draw(d):
        found = NUMPY[f"numpy.{name}"](d)
        # jax forgets `initial` where it adds in a wider dtype than that of the result.
        narrow = dict(found.kwargs).get("dtype") in ("float16", "bfloat16")
        return call(*found.args, **{k: v for k, v in found.kwargs if k != "initial" or not narrow})

    return draw


METHODS = {
    **every("method", "T mT real imag copy conj conjugate flat nbytes itemsize ndim size shape dtype", alone()),
    **every("method", "tolist", alone("bifc")),
    **every("method", "byteswap", alone()),
    **{
        path: draw
        for name in ["all", "any", "argmax", "argmin", "argpartition", "argsort", "choose", "cumprod", "cumsum", "diagonal", "dot", "max", "mean", "min", "nonzero", "prod", "ptp", "ravel", "repeat", "round", "searchsorted", "sort", "squeeze", "std", "sum", "swapaxes", "take", "trace", "var"]
        for path, draw in as_function(name).items()
    },
    "method.sum": total("sum"),
    "method.prod": total("prod"),
    "method.astype": astype,
    "method.clip": clip,
    "method.compress": compress,
    "method.flatten": flatten,
    "method.item": item,
    "method.reshape": reshape,
    "method.transpose": transpose,
    "method.view": view,
}  # fmt: skip

# --- x.at[index]


def part(d, n):
    """What one axis of so many elements is indexed with."""
    kind = d.pick("int", "slice", "slice", "array", "array", "mask", "number")
    if kind == "int":
        return d.integer(-n, n - 1) if n and not d.wrong() else n + 1
    if kind == "slice":
        return slice(d.pick(None, 0, 1, -2), d.pick(None, 2, -1, 5), d.pick(None, None, 1, 2, -1))
    if kind == "mask":
        return judge.rng(d.integer(0, 9)).integers(0, 2, n + d.wrong()).astype(bool)
    if kind == "number":
        return S(d.integer(-n - 1, n))
    reach = n + 2 if d.chance(0.3) else max(n - 1, 0)
    return d.array(d.pick((), (2,), (2,), (2, 1), (0,)), "i", low=-reach, high=reach)


def places(d, shape):
    """An index, and the shape of what it selects, if NumPy knows it."""
    if d.chance(0.1):
        parts = [d.pick(..., None, True, d.array(shape, "b"), d.array(shape, "b"), "a", 1.5, (), slice(None))]
    else:
        parts = [part(d, n) for n in shape[: d.integer(0, len(shape))]]
        for extra in (None, ...):
            if d.chance(0.15):
                parts.insert(d.integer(0, len(parts)), extra)
    known = tuple(np.zeros(x.shape, int) if isinstance(x, A) else 0 if isinstance(x, S) else x for x in parts)
    try:
        selected = np.zeros(shape)[known].shape
    except IndexError:
        selected = ()
    return parts[0] if len(parts) == 1 and d.chance(0.7) else tuple(parts), selected


MODES = ["clip", "fill", "drop", None]


def get(d):
    x = d.array(kinds="bifcn")
    return call(x, places(d, x.shape)[0], **d.some(mode=MODES, fill_value=[7, 2.5, None], indices_are_sorted=[False]))


def write(kinds="bifc"):
    def draw(d):
        x = d.array(kinds=kinds)
        index, selected = places(d, x.shape)
        # Elements alike, as it is open which of several updates of one place is the last.
        shape = d.pick(selected, selected, selected[1:], (), (7,) if d.wrong() else ())
        dtype = d.pick(x.dtype, x.dtype, d.dtype(kinds, stray=0))
        value = d.number() if dtype == "bool" or d.chance(0.2) else d.array(shape, dtype=dtype, low=2, high=2)
        return call(x, index, value, **d.some(mode=MODES))

    return draw


def apply(d):
    x = d.array(kinds="iffc")
    return call(x, places(d, x.shape)[0], d.pick(lambda v: v * 2, lambda v: v * v + 1), **d.some(mode=MODES))


AT = {
    "at.get": get,
    **every("at", "set add subtract multiply min max", write()),
    **every("at", "divide power", write("iffc")),
    "at.apply": apply,
}

# --- methods of ufuncs


def reduce(kinds, initial=True):
    def draw(d):
        x = d.array(kinds=kinds)
        options = {
            "keepdims": [True, False],
            "where": [d.array(d.pick(x.shape, x.shape[1:], ()), "b")],
            "dtype": [d.dtype(kinds)],
        }
        if initial:
            options["initial"] = [d.number(kinds)]
        return call(x, **d.some(axis=[d.axes(len(x.shape))] * 2, **options))

    return draw


def accumulate(kinds):
    def draw(d):
        x = d.array(d.shape(1), kinds)
        return call(x, **d.some(axis=[d.axis(len(x.shape))] * 2, dtype=[d.dtype(kinds)]))

    return draw


def at(kinds, binary):
    def draw(d):
        x = d.array(d.full(1, 2), kinds)
        n = x.shape[0]
        index = d.pick(d.integer(-n, n - 1), d.array(d.pick((2,), (3,), (2, 2), (0,)), "i", low=-n, high=n - 1))
        value = [d.pick(d.array((), dtype=x.dtype), d.number(kinds))] if binary else []
        return call(x, index, *value, inplace=False)

    return draw


def reduceat(kinds):
    def draw(d):
        x = d.array(d.full(1), kinds)
        axis = d.axis(len(x.shape))
        n = x.shape[axis] if -len(x.shape) <= axis < len(x.shape) else 1
        index = d.array(d.pick((1,), (2,), (3,), ()) if d.chance(0.1) else (2,), "i", low=0, high=n - 1)
        return call(x, index, **({"axis": axis} if axis or d.chance(0.5) else {}), **d.some(dtype=[d.dtype(kinds)]))

    return draw


def outer(kinds):
    return lambda d: call(
        d.array(d.shape(0, 2), kinds), d.number(kinds) if d.chance(0.2) else d.array(d.shape(0, 2), kinds)
    )


def methods(name):
    kinds = "bii" if "bitwise" in name else "iff" if "logadd" in name else "biffc"
    return {
        # jax fails an assertion of its own where the logarithm of a sum begins with a number.
        f"numpy.{name}.reduce": reduce(kinds, initial="logadd" not in name),
        f"numpy.{name}.accumulate": accumulate(kinds),
        f"numpy.{name}.at": at(kinds, name != "negative"),
        f"numpy.{name}.reduceat": reduceat(kinds),
        f"numpy.{name}.outer": outer(kinds),
    }


OF_UFUNCS = {path: draw for name in UFUNCS for path, draw in methods(name).items()}

TABLE = METHODS | AT | OF_UFUNCS

test_of_arrays = values(METHODS, 2 * judge.CASES)
test_at = values(AT, 6 * judge.CASES)
test_of_ufuncs = values(OF_UFUNCS, 2 * judge.CASES)


def test_every_method_is_drawn():
    """What concerns devices, and the weak type, is in test_array_methods; `at` has a table of its own."""
    assert not set(PUBLIC) - {path.removeprefix("method.") for path in METHODS} - {*DEVICES, "at", "weak_type"}


def test_every_change_is_drawn():
    public = {n for n in dir(jax.numpy.zeros(1).at[0]) if not n.startswith("_")}
    assert {f"at.{name}" for name in public - {"mul", "array", "index"}} == set(AT)
