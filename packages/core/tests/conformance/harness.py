"""Tables of calls: a row names a function and how to call it, and is run in phlox and in jax, eagerly, under jit, grad and vmap.

    row("numpy.sum", call(A(2, 3)), call(A(2, 3, 4), axis=(0, -1)))

`A` stands for a random array. Its dtype, unless given, is drawn from the row's, another one for each call; PHLOX_TEST_CASES
asks for more of them. Where jax refuses a call, phlox must refuse it with an error of the same kind.
"""

from __future__ import annotations

import dataclasses
import functools
import zlib

import jax
import numpy as np
import pytest

import judge
import phlox
from judge import outcome, same_kind

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-30, 3e38, -0.75, 100.0]


@dataclasses.dataclass(frozen=True, init=False)
class A:
    """A random array; `dtype` None is the dtype of the call, "other" a second one. `whole` numbers give ties."""

    shape: tuple
    dtype: str | None = None
    low: float = -3.0
    high: float = 3.0
    whole: bool = False

    def __init__(self, *shape, dtype=None, low=-3.0, high=3.0, whole=False):
        values = {"shape": shape, "dtype": dtype, "low": low, "high": high, "whole": whole}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def make(self, dtype, other, *seed):
        wanted = {None: dtype, "other": other}.get(self.dtype, self.dtype)
        x = judge.array(judge.rng(self.shape, wanted, *seed), self.shape, wanted, self.low, self.high)
        return np.round(x) if self.whole and x.dtype.kind not in "biu" else x

    def __repr__(self):
        return "A" + str(list(self.shape)).replace(" ", "") + (f":{self.dtype}" if self.dtype else "")


def B(*shape):
    """A random mask."""
    return A(*shape, dtype="bool")


def I(*shape, low=-2, high=2):  # noqa: E743 - it is what stands for integers
    """Random int32 numbers, both ends included."""
    return A(*shape, dtype="int32", low=low, high=high)


@dataclasses.dataclass(frozen=True)
class S:
    """A Python scalar that is an argument: weakly typed, and traced under jit."""

    value: object

    def make(self, dtype, other, *seed):
        return self.value

    def __repr__(self):
        return f"S({self.value})"


@dataclasses.dataclass(frozen=True)
class Of:
    """What the library at hand has under this name: `Of("lax.max")`; with keywords, what it returns for them."""

    path: str
    keywords: tuple = ()

    def __repr__(self):
        return self.path + (f"({', '.join(f'{k}={v!r}' for k, v in self.keywords)})" if self.keywords else "")


@dataclasses.dataclass(frozen=True)
class Special:
    """Zeros, infinities, nan, huge and tiny numbers; for integers their extremes."""

    def make(self, dtype, other, *seed):
        kind = np.dtype(judge.array(judge.rng(), (), dtype).dtype)
        if kind.kind in "iu":
            info = np.iinfo(kind)
            return np.array([info.min, info.max, 0, 1, info.max - 1, info.min + 1, 7], kind)
        if kind.kind == "b":
            return np.array([True, False])
        with np.errstate(all="ignore"):
            return np.array(SPECIAL).astype(kind)


@dataclasses.dataclass(frozen=True)
class Call:
    args: tuple
    kwargs: tuple

    def __repr__(self):
        return ",".join([*map(repr, self.args), *(f"{k}={v!r}" for k, v in self.kwargs)])


@dataclasses.dataclass(frozen=True)
class F:
    """A function as an argument, written as text, which is its name in the list of tests."""

    text: str

    def __call__(self, *args, **kwargs):
        return eval(f"lambda {self.text}")(*args, **kwargs)

    def __repr__(self):
        return f"F({self.text})"


def call(*args, **kwargs):
    """Arguments of one call; `A` and `S` in them (in lists and tuples too) are arrays, all else is passed as it is."""
    return Call(args, tuple(kwargs.items()))


@dataclasses.dataclass(frozen=True)
class Row:
    """A function and calls of it. `grad`, `vmap`, `twice`: whether derivatives, batches, second derivatives are compared."""

    path: str
    calls: tuple
    dtypes: tuple = tuple(judge.ALL)
    grad: bool = True
    twice: bool = False
    vmap: bool = True
    jit: bool = True
    exact: bool = False
    tolerance: float | None = None

    @property
    def name(self):
        return self.path


def row(path, *calls, dtypes=judge.ALL, **options):
    return Row(path, calls, tuple(dtypes), **options)


def rows(module, names, *calls, **options):
    """One row for each of several functions that are called alike."""
    return [row(f"{module}.{name}", *calls, **options) for name in names.split()]


# --- running a call ----------------------------------------------------------------------------------------


def _slots(x, found):
    """All `A` and `S` in the arguments, in order."""
    if isinstance(x, A | S | Special):
        found.append(x)
    elif isinstance(x, Call):
        _slots(list(x.args), found)
        _slots([v for _, v in x.kwargs], found)
    elif isinstance(x, list | tuple):
        for item in x:
            _slots(item, found)
    elif isinstance(x, dict):
        for item in x.values():
            _slots(item, found)
    return found


def _fill(x, values, module):
    if isinstance(x, A | S | Special):
        return next(values)
    if isinstance(x, Of):
        found = function(module, x.path)
        return found(**dict(x.keywords)) if x.keywords else found
    if type(x) in (list, tuple):
        return type(x)(_fill(item, values, module) for item in x)
    if isinstance(x, dict):
        return {k: _fill(v, values, module) for k, v in x.items()}
    return x


def function(module, path):
    """`numpy.sin` of a library; `method.sum` calls the method of its first argument, or is its property.

    `at.set` takes an array, an index and the arguments of ``x.at[index].set``.
    """
    first, _, rest = path.partition(".")
    if first == "method":
        return lambda x, *args, **kwargs: _use(getattr(module.numpy.asarray(x), rest), args, kwargs)
    if first == "at":
        return lambda x, index, *args, **kwargs: getattr(module.numpy.asarray(x).at[index], rest)(*args, **kwargs)
    return functools.reduce(getattr, path.split("."), module)


def _use(found, args, kwargs):
    return found(*args, **kwargs) if callable(found) else found


def case_of(row, call):
    """The call as a case of `judge`: a function of a library and of the arrays alone."""

    def case(module, *xs):
        values = iter(xs)
        args = [_fill(x, values, module) for x in call.args]
        kwargs = {k: _fill(v, values, module) for k, v in call.kwargs}
        return function(module, row.path)(*args, **kwargs)

    return case


def inputs(row, call, dtype):
    """The random arguments of a call, the same in every run."""
    other = rotate(judge.ALL, 1, row.path, repr(call), dtype)[0]
    return [slot.make(dtype, other, row.path, i) for i, slot in enumerate(_slots(call, []))]


def rotate(pool, count, *seed):
    """`count` of the pool, beginning at a place that depends on the seed alone."""
    start = zlib.crc32(repr(seed).encode())
    return [pool[(start + i * 5 + i // len(pool)) % len(pool)] for i in range(len(pool))][: max(1, count)]


#: tuples as in NumPy 2 and the array API standard, and in jax from 0.12 on: before it they were lists
TUPLES = {"numpy.broadcast_arrays", "numpy.meshgrid"}


def agree(mine, theirs, row, what, **options):
    """Compares two outcomes: results (structure and class included), or errors."""
    (x, x_error), (y, y_error) = mine, theirs
    if x_error is not None or y_error is not None:
        same_kind(x_error, y_error, what)
        return
    if row is not None and row.path in TUPLES:
        y = tuple(y)
    structure, expected = str(phlox.tree_util.tree_structure(x)), str(jax.tree_util.tree_structure(y))
    assert structure == expected, f"{what}: {structure}, jax has {expected}"
    for a, b in zip(phlox.tree_util.tree_leaves(x), jax.tree_util.tree_leaves(y), strict=True):
        assert isinstance(a, phlox.Array) or not isinstance(b, jax.Array), f"{what}: a {type(a).__name__}, no Array"
    judge.compare(x, y, what=what, **{"tolerance": row.tolerance, "exact": row.exact, **options})


def both(case, *args, what="", **options):
    """Compares what a case gives, or how it is refused, with each library."""
    agree(outcome(case, phlox, args), outcome(case, jax, args), row("both"), what, **options)


def data(shape, dtype="float32", *seed):
    """Random numbers, the same in every run."""
    return judge.array(judge.rng("lax more", *seed), shape, dtype)


# --- what is compared --------------------------------------------------------------------------------------


def check_value(row, call, dtype):
    """Values, dtypes, weak types, shapes and kinds of errors: eagerly on NumPy arrays and on phlox's own, and under jit."""
    case, args = case_of(row, call), inputs(row, call, dtype)
    theirs = outcome(case, jax, args)
    agree(outcome(case, phlox, args), theirs, row, "on NumPy arrays")
    if not args:
        return
    ready = [phlox.numpy.asarray(x) for x in args]
    agree(outcome(case, phlox, ready), theirs, row, "on arrays")
    if row.jit:
        staged = lambda m, *xs: m.jit(functools.partial(case, m))(*xs)
        mine = outcome(staged, phlox, args)
        try:
            agree(mine, theirs, row, "under jit")
        except AssertionError:  # seldom, jax itself answers otherwise under jit, about Python scalars above all
            agree(mine, outcome(staged, jax, args), row, "under jit")


def _weighted(case, module):
    def total(*xs):
        leaves = [module.numpy.real(x) for x in module.tree_util.tree_leaves(case(module, *xs))]
        leaves = [x for x in leaves if module.numpy.issubdtype(x.dtype, module.numpy.inexact)]
        return sum((x * judge.weights(x.shape).astype(x.dtype)).sum() for x in leaves)

    return total


def _derivative(case, module, argnums, twice):
    gradient = module.grad(_weighted(case, module), argnums)
    if not twice:
        return gradient

    def second(*xs):
        """The derivative of the gradient along one direction: forward over reverse."""

        def at(*chosen):
            filled = list(xs)
            for n, x in zip(argnums, chosen, strict=True):
                filled[n] = x
            return gradient(*filled)

        chosen = [xs[n] for n in argnums]
        directions = [judge.weights(np.shape(x)).astype(module.numpy.asarray(x).dtype) for x in chosen]
        return module.jvp(at, chosen, directions)[1]

    return second


def check_grad(row, call, dtype, twice=False):
    """Gradients of all float arguments together: reverse mode, or forward over reverse.

    Without weak types: which gradients of Python scalars are weak follows how jax composes a function.
    """
    case, args = case_of(row, call), inputs(row, call, dtype)
    floats = tuple(
        i for i, x in enumerate(args) if isinstance(x, float | complex) or np.asarray(x).dtype.kind not in "biu"
    )
    if not floats:
        return
    run = lambda m, *xs: m.jit(_derivative(case, m, floats, twice))(*xs)
    theirs = outcome(run, jax, args)
    # The gradient of a Python scalar is float32 also where all was computed in half precision.
    bound = row.tolerance or (judge.TOLERANCE[dtype] if dtype in ("float16", "bfloat16") else None)
    options = {"exact": False, "weak": False, "tolerance": bound}
    if theirs[1] is not None and outcome(case, jax, args)[1] is not None:
        return  # the call itself is refused, which the test of values judges
    agree(outcome(run, phlox, args), theirs, row, "grad under jit", **options)
    ready = [x if isinstance(x, float | complex) else phlox.numpy.asarray(x) for x in args]
    eager = lambda m, *xs: _derivative(case, m, floats, twice)(*xs)
    agree(outcome(eager, phlox, ready), theirs, row, "grad", **options)


def loop(case, module, stacked, in_axes, out_axes):
    """What vmap means: the results of the examples, stacked."""
    length = next(np.shape(x)[d] for x, d in zip(stacked, in_axes, strict=True) if d is not None)
    results = [
        case(module, *[x if d is None else np.take(x, i, d) for x, d in zip(stacked, in_axes, strict=True)])
        for i in range(length)
    ]
    return module.tree.map(lambda *xs: module.numpy.stack(xs, out_axes), *results)


def check_vmap(row, call, dtype):
    """vmap over each argument alone and over all, along axes and into axes that change from case to case."""
    case, args = case_of(row, call), inputs(row, call, dtype)
    arrays = [i for i, x in enumerate(args) if isinstance(x, np.ndarray)]
    if not arrays:
        return
    chosen = [(i,) for i in arrays] + ([tuple(arrays)] if len(arrays) > 1 else [])
    for mapped in chosen:
        seed = (row.path, repr(call), dtype, mapped)
        stacked, in_axes = list(args), [None] * len(args)
        for i in mapped:
            in_axes[i] = rotate(range(args[i].ndim + 1), 1, i, *seed)[0]
            x, random = args[i], judge.rng("batch", i, *seed)
            stacked[i] = np.stack([x, judge._perturbed(x, random), judge._perturbed(x, random)], in_axes[i])
            in_axes[i] -= rotate([0, args[i].ndim + 1], 1, "sign", i, *seed)[0]
        out_axes = rotate([0, -1], 1, *seed)[0]
        run = lambda m, *xs, i=tuple(in_axes), o=out_axes: m.jit(m.vmap(functools.partial(case, m), i, o))(*xs)
        theirs = outcome(run, jax, stacked)
        if theirs[1] is not None:
            if outcome(case, jax, args)[1] is not None:
                return  # the call itself is refused, which the test of values judges
            theirs = loop(case, jax, stacked, in_axes, out_axes), None  # jax has no batching rule here
        what = f"vmap {in_axes} -> {out_axes}"
        agree(outcome(run, phlox, stacked), theirs, row, what)


# --- rows as tests -----------------------------------------------------------------------------------------


def _drawn(call):
    """Whether the call has arrays of no particular dtype."""
    return any(
        isinstance(slot, Special) or (isinstance(slot, A) and slot.dtype in (None, "other"))
        for slot in _slots(call, [])
    )


def _test(check, table, dtypes_of):
    """A test with one case for each call and each of the dtypes that `dtypes_of(row, call, position)` gives for it."""
    cases = [
        pytest.param(row, call, dtype, id=f"{row.path}({call!r})" + (f"-{dtype}" if _drawn(call) else ""))
        for row in table
        for i, call in enumerate(row.calls)
        for dtype in dtypes_of(row, call, i)
    ]

    @pytest.mark.parametrize(("row", "call", "dtype"), cases)
    def test(row, call, dtype):
        check(row, call, dtype)

    return test


def values(table):
    """The test of values: two dtypes for each call, others for each."""
    return _test(
        check_value,
        table,
        lambda row, call, i: rotate(row.dtypes, 2 * judge.CASES if _drawn(call) else 1, row.path, i),
    )


def gradients(table):
    """The test of gradients: float32 for every call, and one of the other inexact dtypes for the first."""

    def dtypes(row, call, i):
        if not row.grad or not _slots(call, []):
            return []
        inexact = [d for d in row.dtypes if d in judge.FLOATS + judge.COMPLEX]
        rest = [d for d in inexact if d != "float32"]
        more = rotate(rest, judge.CASES, row.path, i) if rest and i < judge.CASES else []
        return ([d for d in inexact if d == "float32"] + more)[: None if _drawn(call) else 1]

    return _test(check_grad, table, dtypes)


def second_derivatives(table):
    """The test of second derivatives, forward over reverse, of the first calls of rows that ask for it."""
    return _test(
        functools.partial(check_grad, twice=True),
        [row for row in table if row.twice],
        lambda row, call, i: ["float32"] if i < judge.CASES else [],
    )


def batches(table):
    """The test of vmap: one dtype for each call, another one for each."""

    def dtypes(row, call, i):
        if not row.vmap or not any(isinstance(slot, A | Special) for slot in _slots(call, [])):
            return []
        return rotate(row.dtypes, judge.CASES if _drawn(call) else 1, row.path, i, "vmap")

    return _test(check_vmap, table, dtypes)


def wide(table):
    """The test of values in 64 bits: the first call of each row."""

    def check(row, call, dtype):
        with phlox.enable_x64(True), jax.enable_x64(True):
            check_value(row, call, dtype)

    def dtypes(row, call, i):
        if i >= judge.CASES:
            return []
        pool = [
            {"float32": "float64", "int32": "int64", "uint32": "uint64", "complex64": "complex128"}.get(d, d)
            for d in row.dtypes
        ]
        inexact = [d for d in pool if d in ("float64", "complex128")]
        first = inexact[:1]
        return list(dict.fromkeys(first + rotate(pool, judge.CASES, row.path, i, "wide")))[
            : None if _drawn(call) else 1
        ]

    return _test(check, table, dtypes)
