"""Draws calls of public functions for the tests `test_drawn_*`, which compare them with the real jax.

A table says for each function how a call of it is drawn: `{"numpy.sum": lambda d: call(d.array(), axis=d.axes(...))}`.
What is drawn depends on the function's name and the number of the case alone, so that any case can be run again.
PHLOX_TEST_CASES multiplies the number of cases. About one call in twelve has something wrong with it: a dtype that does
not fit, shapes that do not match, an axis that does not exist; there the kinds of the errors are compared.
"""

from __future__ import annotations

import dataclasses
import gc
import random
import types

import jax
import numpy as np
import pytest

import judge
import phlox
from conformance.harness import SPECIAL, A, Call, Row, S, case_of, check_value, inputs, outcome

#: How many calls of each function are drawn.
CASES = 3 * judge.CASES
#: After how many calls compiled programs are forgotten: a process may map 65530 pieces of memory, each program has several.
FORGET = 400

NARROW = ["int4", "uint4", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz"]
KINDS = {"b": judge.BOOL, "i": judge.INTS, "f": judge.FLOATS, "c": judge.COMPLEX, "n": NARROW}
WIDE = {"b": judge.BOOL, "i": ["int64", "uint64"], "f": ["float64"], "c": ["complex128"], "n": NARROW}
WEIGHTS = {"b": 2, "i": 4, "f": 6, "c": 2, "n": 1}
#: Few, so that programs are compiled once for many calls.
SHAPES = [(), (0,), (1,), (3,), (4,), (2, 3), (3, 1), (0, 2), (3, 3), (2, 0, 3), (2, 1, 3), (3, 2, 2), (1, 2, 1, 3, 2)]


@dataclasses.dataclass(frozen=True, init=False)
class Odd(A):
    """A random array with zeros, infinities, nan, huge and tiny numbers among its elements; for integers their extremes."""

    def make(self, dtype, other, *seed):
        x, chosen = super().make(dtype, other, *seed), judge.rng("odd", *seed)
        if x.dtype.kind == "b":
            return x
        if x.dtype.kind in "iu":
            info = np.iinfo(x.dtype)
            special = np.array([info.min, info.max, 0, 1], x.dtype)
        else:
            with np.errstate(all="ignore"):
                special = np.array(SPECIAL).astype(x.dtype)
        return np.where(chosen.integers(0, 2, x.shape), chosen.choice(special, x.shape), x)

    def __repr__(self):
        return "Odd" + super().__repr__()[1:]


class Draw:
    """The choices of one call."""

    def __init__(self, path: str, index: int):
        self.random = random.Random(f"{path} {index}")
        #: Whether the call is one of 64-bit mode.
        self.wide = self.chance(0.15)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def wrong(self) -> bool:
        """Whether this choice shall be one that does not fit."""
        return self.chance(0.05)

    def pick(self, *choices):
        return self.random.choice(choices)

    def integer(self, low: int, high: int) -> int:
        """Both ends are included."""
        return self.random.randint(low, high)

    def some(self, **options):
        """Some of these keywords, each with one of its values."""
        return {name: self.pick(*values) for name, values in options.items() if self.chance(0.35)}

    # --- dtypes and shapes

    def dtype(self, kinds="bifc", stray=0.06) -> str:
        """A dtype of one of these kinds: b, i, f, c, and n for those of 8 bits and less; seldom another one."""
        kinds = "bifcn" if self.chance(stray) else kinds
        kind = self.random.choices(kinds, [WEIGHTS[k] for k in kinds])[0]
        return self.pick(*(WIDE if self.wide and self.chance(0.6) else KINDS)[kind])

    def shape(self, low=0, high=5):
        """A shape with so many axes."""
        return self.pick(*[s for s in SHAPES if low <= len(s) <= high or self.chance(0.02)])

    def full(self, low=0, high=5):
        """A shape with elements."""
        return self.pick(*[s for s in SHAPES if low <= len(s) <= high and 0 not in s])

    def shapes(self, count: int, low=0):
        """Shapes that can be broadcast with one another, seldom some that cannot."""
        whole = self.shape(low)
        found = [whole]
        while len(found) < count:
            if self.chance(0.04):
                found.append(self.shape())
                continue
            kept = tuple(1 if self.chance(0.2) else n for n in whole)
            found.append(kept[self.pick(0, 0, 0, *range(len(kept) + 1)) :])
        self.random.shuffle(found)
        return found

    def axis(self, ndim: int, extra=0) -> int:
        """One axis, counted from either end; `extra` 1 allows the place behind the last one."""
        if self.wrong() or not ndim + extra:
            return self.pick(ndim + extra, -ndim - extra - 1)
        return self.integer(-ndim - extra, ndim - 1 + extra)

    def axes(self, ndim: int):
        """None, one axis, or a tuple of them."""
        kind = self.pick("none", "one", "several")
        if kind == "none":
            return None
        if kind == "one":
            return self.axis(ndim)
        return self.several(ndim, self.integer(0, ndim))

    def several(self, ndim: int, count: int):
        """A tuple of so many different axes, seldom the same one twice."""
        chosen = tuple(n - ndim * self.chance(0.3) for n in self.random.sample(range(ndim), count))
        return (*chosen, chosen[0]) if chosen and self.chance(0.03) else chosen

    # --- arguments

    def array(self, shape=None, kinds="bifc", dtype=None, odd=False, **values) -> A:
        shape = self.shape() if shape is None else shape
        dtype = self.dtype(kinds) if dtype is None else dtype
        if not values:
            values = self.pick({}, {}, {"whole": True}, {"low": 0.1, "high": 1.0} if odd else {})
            if odd and dtype not in NARROW and self.chance(0.25):
                return Odd(*shape, dtype=dtype)
        return A(*shape, dtype=dtype, **values)

    def number(self, kinds="bifc") -> S:
        """A Python number, which is weakly typed, seldom a scalar of NumPy. Unsigned dtypes hold it too."""
        values = {"b": [True, False], "i": [2, 1, 0], "f": [1.5, -0.25, 0.0], "c": [1.5 - 0.5j]}
        value = self.pick(*values[self.pick(*[k for k in kinds if k in values])])
        return S(np.float32(1.5) if isinstance(value, float) and self.chance(0.2) else value)

    def operands(self, count: int, kinds="bifc", mixed=0.3, low=0, **values) -> list:
        """Arrays for an elementwise function; `mixed` says how often a dtype differs from the first one's."""
        dtype = self.dtype(kinds)
        found = []
        for shape in self.shapes(count, low):
            if found and self.chance(mixed / 2):
                found.append(self.number(kinds))
            else:
                found.append(self.array(shape, dtype=self.dtype(kinds) if self.chance(mixed) else dtype, **values))
        self.random.shuffle(found)
        return found

    def alike(self, count: int, shape=None, kinds="bifc", **values) -> list:
        """Arrays of one dtype and one shape, as lax wants them; seldom not."""
        shape, dtype = self.shape() if shape is None else shape, self.dtype(kinds)
        return [
            self.array(
                self.shape() if i and self.wrong() else shape,
                dtype=self.dtype(kinds) if i and self.wrong() else dtype,
                **values,
            )
            for i in range(count)
        ]

    def matrix(self, batch=None, rows=None, columns=None, kinds="fc", stray=0.06, **values) -> A:
        """Matrices in a batch; `rows` and `columns` may be zero, unless LAPACK has no routines for their dtype."""
        dtype = self.dtype(kinds, stray)
        none = [] if dtype in [*NARROW, "float16", "bfloat16"] else [0]
        batch = self.pick((), (), (2,), (2, 1), *zip(none)) if batch is None else batch
        rows = self.pick(1, 2, 3, 3, *none) if rows is None else rows
        columns = self.pick(1, 2, 3, 3, *none) if columns is None else columns
        return self.array((*batch, rows, columns), dtype=dtype, **values)

    def square(self, kinds="fc", **values) -> A:
        """Square matrices, seldom others."""
        found = self.matrix(kinds=kinds, **values)
        n = found.shape[-1]
        shape = (*found.shape[:-2], n, n + self.wrong())
        return type(found)(*shape, dtype=found.dtype, low=found.low, high=found.high, whole=found.whole)


def drawn(path: str, index: int, table) -> tuple[Draw, Call]:
    """The call of a function that has this number."""
    d = Draw(path, index)
    return d, table[path](d)


def every(module: str, names: str, draw) -> dict:
    """Several functions whose calls are drawn alike."""
    return {f"{module}.{name}": draw for name in names.split()}


#: Where jax refuses arguments that NumPy takes, and phlox answers as NumPy does.
AS_NUMPY = {
    "numpy.split": "places beyond the ends",
    "numpy.array_split": "places beyond the ends",
    "numpy.hsplit": "places beyond the ends",
    "numpy.vsplit": "places beyond the ends",
    "numpy.dsplit": "places beyond the ends",
    "numpy.abs": "int4",
    "numpy.absolute": "int4",
    "numpy.cumsum": "the last axis of a number",
    "numpy.cumprod": "the last axis of a number",
    "numpy.nancumsum": "the last axis of a number",
    "numpy.nancumprod": "the last axis of a number",
    "numpy.kron": "bools",
    "numpy.permute_dims": "negative axes",
    "numpy.polyadd": "polynomials without coefficients",
    "numpy.polysub": "polynomials without coefficients",
    "numpy.bartlett": "a negative number of points",
    "numpy.blackman": "a negative number of points",
    "numpy.hamming": "a negative number of points",
    "numpy.hanning": "a negative number of points",
    "numpy.unpackbits": "axes without elements",
    "numpy.histogram": "no elements",
    "numpy.histogram_bin_edges": "no elements",
    "numpy.nanmedian": "no elements",
    "numpy.nanpercentile": "no elements",
    "numpy.nanquantile": "no elements",
}
#: Calls with -1 for unsigned integers, which phlox refuses as NumPy does, and jax takes for the largest number.
DO_NOT_FIT = {("numpy.amax", 1), ("numpy.intersect1d", 4), ("numpy.intersect1d", 6), ("numpy.unique_all", 1)}
#: Calls in which the compiler of jaxlib 0.10.2 divides by zero, which ends the process: means of no integers.
ENDS_JAX = {("numpy.mean", 5)}


def _answered_by_numpy(row: Row, call: Call) -> bool:
    """Whether this call is one that jax refuses; then phlox, if it does not, must give NumPy's values."""
    case, args = case_of(row, call), inputs(row, call, "float32")
    mine, refused = outcome(case, phlox, args), outcome(case, jax, args)[1]
    if refused is None or mine[1] is not None:
        return False
    theirs = phlox.tree_util.tree_leaves(case(types.SimpleNamespace(numpy=np), *args))
    for x, y in zip(phlox.tree_util.tree_leaves(mine[0]), theirs, strict=True):
        assert x.shape == y.shape, f"shape {x.shape}, NumPy has {y.shape}"
        judge.same_values(np.asarray(x), y.astype(x.dtype), what="where jax refuses, and NumPy does not")
    return True


def check(table, path: str, index: int) -> None:
    """Compares one drawn call with jax: eagerly, on arrays, and under jit."""
    d, call = drawn(path, index, table)
    row = Row(path, (call,))
    if (path, index) in DO_NOT_FIT:
        with pytest.raises(phlox.errors.NumberRangeError):
            case_of(row, call)(phlox, *inputs(row, call, "float32"))
        return
    if (path, index) in ENDS_JAX and jax.__version_info__ < (0, 11):
        pytest.skip("jax ends the process")
    try:
        with phlox.enable_x64(d.wide), jax.enable_x64(d.wide):
            if path not in AS_NUMPY or not _answered_by_numpy(row, call):
                check_value(row, call, "float32")
    except Exception as error:
        error.add_note(f"{path}({call!r})" + " in 64-bit mode" * d.wide)
        raise


def values(table, cases=CASES):
    """The test of a table: each function with each number of a case."""
    count = 0

    @pytest.mark.parametrize("index", range(cases))
    @pytest.mark.parametrize("path", sorted(table))
    def test(path, index):
        nonlocal count
        count += 1
        if count % FORGET == 0:
            phlox.clear_caches()
            jax.clear_caches()
            gc.collect()
        check(table, path, index)

    return test
