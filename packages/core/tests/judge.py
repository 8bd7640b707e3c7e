"""The real jax as judge of values, dtypes, weak types and shapes.

A case is a function of a namespace: ``lambda m, x: m.numpy.sin(x)`` is run with ``m = phlox`` and with ``m = jax`` on the
same NumPy arrays, and the results are compared. `agree` runs it eagerly and under jit; `agree_grad` compares
gradients, with numeric ones as a second opinion; `agree_vmap` compares a batch with a loop over its examples.

How many cases there are is one knob: PHLOX_TEST_CASES (few, default, all, or a factor: conftest.py). At 1, the default,
every third case that the tables of the conformance tests list is run; from 3 on all are, and so many times more random
inputs are drawn; below 1 it is a share of that third, another one each day (PHLOX_TEST_ROTATION=3 is that of the
third day).
"""

from __future__ import annotations

import os
import types
import zlib

import jax
import jax.numpy
import ml_dtypes
import numpy as np

import phlox
import phlox.numpy

FACTOR = float(os.environ.get("PHLOX_TEST_CASES", "1"))
CASES = max(1, int(FACTOR))
#: what rotates from day to day depends on it alone
DAY = int(os.environ.get("PHLOX_TEST_ROTATION", "0"))

BOOL = ["bool"]
INTS = ["int8", "int16", "int32", "uint8", "uint16", "uint32"]
FLOATS = ["float16", "bfloat16", "float32"]
COMPLEX = ["complex64"]
REAL = BOOL + INTS + FLOATS
ALL = REAL + COMPLEX

#: How far results of different but equally good programs may lie apart, relative to their size.
TOLERANCE = {
    "float16": 4e-3,
    "bfloat16": 3e-2,
    "float32": 2e-5,
    "float64": 1e-12,
    "complex64": 2e-5,
    "complex128": 1e-12,
}


def rng(*seed):
    """A generator that depends on what is tested alone, so that a case can be run again."""
    return np.random.default_rng(zlib.crc32(repr(seed).encode()))


def array(random, shape, dtype, low=-3.0, high=3.0):
    """Random elements of this dtype between `low` and `high`; integers include both ends, bools are coin tosses."""
    kind = np.dtype(dtype) if dtype not in ("bfloat16",) else np.dtype(ml_dtypes.bfloat16)
    if kind.kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    if kind.kind in "iu":
        lo = max(low, 0) if kind.kind == "u" else low
        return random.integers(int(np.ceil(lo)), int(np.floor(high)) + 1, shape).astype(kind)
    if kind.kind == "c":
        return (random.uniform(low, high, shape) + 1j * random.uniform(low, high, shape)).astype(kind)
    return random.uniform(low, high, shape).astype(kind)


def _leaves(module, tree):
    return module.tree_util.tree_leaves(tree)


def to_host(x):
    """A result of either library as NumPy array, its dtype name and its weak type."""
    weak = bool(getattr(x, "weak_type", False))
    dtype = getattr(x, "dtype", None)
    if dtype is not None and str(dtype).startswith("key<"):
        module = phlox if isinstance(x, phlox.Array) else jax
        return np.asarray(module.random.key_data(x)), str(dtype), weak
    value = np.asarray(x)
    return value, value.dtype.name, weak


def compare(mine, theirs, *, tolerance=None, exact=False, weak=True, what=""):
    """Asserts that two results agree in structure, shape, dtype, weak type and values."""
    a, b = _leaves(phlox, mine), _leaves(jax, theirs)
    assert len(a) == len(b), f"{what}: {len(a)} results, jax has {len(b)}"
    for x, y in zip(a, b, strict=True):
        x, x_dtype, x_weak = to_host(x)
        y, y_dtype, y_weak = to_host(y)
        assert x.shape == y.shape, f"{what}: shape {x.shape}, jax has {y.shape}"
        assert x_dtype == y_dtype, f"{what}: dtype {x_dtype}, jax has {y_dtype}"
        if weak:
            assert x_weak == y_weak, f"{what}: weak_type {x_weak}, jax has {y_weak}"
        same_values(x, y, tolerance=tolerance, exact=exact, what=what)


def same_values(x, y, *, tolerance=None, exact=False, what=""):
    """Asserts that two NumPy arrays agree, up to the tolerance of their dtype; the message is of one line."""
    if exact or x.dtype.name not in TOLERANCE:
        same, bound = (x == y) | ((x != x) & (y != y)), 0
    else:
        bound = TOLERANCE[x.dtype.name] if tolerance is None else tolerance
        wide = np.complex128 if x.dtype.kind == "c" else np.float64
        same = np.isclose(x.astype(wide), y.astype(wide), rtol=bound, atol=bound, equal_nan=True)
    if not same.all():
        at = tuple(int(i) for i in np.argwhere(~same)[0])
        count = f"{int((~same).sum())} of {same.size} elements differ"
        raise AssertionError(f"{what}: {x[at]!r} at {at}, jax has {y[at]!r} ({count}, tolerance {bound})")


def raises_alike(case, *args, **kwargs):
    """Runs the case in both libraries; both must raise, and ours an error of a built-in class that jax's has too."""
    mine, theirs = (outcome(case, module, args, **kwargs)[1] for module in (phlox, jax))
    for module, error in ((phlox, mine), (jax, theirs)):
        assert error is not None, f"{module.__name__} accepted what should be refused"
    same_kind(mine, theirs, "errors")
    return mine


def outcome(case, module, args, **kwargs):
    """(what the case returns, None), or (None, the error that it raises)."""
    try:
        return case(module, *args, **kwargs), None
    except Exception as error:
        return None, error


def same_kind(mine, theirs, what):
    """Asserts that the error of phlox is of the built-in class of jax's."""
    assert mine is not None, f"{what}: jax refuses with {theirs!r}"
    if theirs is None:
        raise AssertionError(f"{what}: jax accepts what is refused: {mine!r}") from mine
    is_accident = isinstance(theirs, ZeroDivisionError) or str(theirs) == "list index out of range"
    is_late = jax.__version_info__ < (0, 12) and "Unsupported dtype" in str(theirs)
    if (is_accident or is_late) and isinstance(mine, phlox.errors.PhloxError):
        return  # in the code of jax, or when it lowers, where phlox says what is wrong
    kinds = tuple(
        c for c in type(theirs).__mro__ if c.__module__ == "builtins" and c not in (Exception, BaseException, object)
    )
    assert not kinds or isinstance(mine, kinds), f"{what}: {mine!r} is not of the kind of {theirs!r}"


def agree(case, *args, jit=True, **options):
    """Compares a case eagerly and, with `jit`, under jit."""
    expected = case(jax, *args)
    compare(case(phlox, *args), expected, what="eager", **options)
    if jit:
        compare(phlox.jit(lambda *xs: case(phlox, *xs))(*args), expected, what="jit", **options)


def agree_grad(case, *args, order=1, tolerance=None, numeric=True, argnums=None):
    """Compares gradients of the sum of a case's (real) results with jax's, and at order 1 with finite differences."""
    if argnums is None:
        argnums = tuple(
            i for i, x in enumerate(args) if np.asarray(x).dtype.kind in "fc" or np.asarray(x).dtype.name in TOLERANCE
        )

    def scalar(module):
        def total(*xs):
            out = case(module, *xs)
            leaves = [module.numpy.real(x) for x in _leaves(module, out)]
            # Weights that differ from element to element, so that errors cannot cancel.
            return sum((x * weights(x.shape).astype(np.asarray(0, x.dtype).dtype)).sum() for x in leaves)

        return total

    def derivative(module):
        f = scalar(module)
        for _ in range(order - 1):
            inner = module.grad(f, argnums)
            f = (
                lambda g: (
                    lambda *xs: sum(
                        leaf.sum() for leaf in _leaves(module, module.tree_util.tree_map(module.numpy.real, g(*xs)))
                    )
                )
            )(inner)
        return module.grad(f, argnums)

    mine, theirs = derivative(phlox)(*args), derivative(jax)(*args)
    compare(mine, theirs, tolerance=tolerance, weak=False, what=f"grad of order {order}")
    compare(
        phlox.jit(derivative(phlox))(*args),
        theirs,
        tolerance=tolerance,
        weak=False,
        what=f"jit of grad of order {order}",
    )
    if numeric and order == 1:
        numeric_grad(scalar(phlox), args, argnums, mine)


def weights(shape):
    """Fixed numbers between 0.5 and 1.5."""
    return 0.5 + (np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape) * 0.37) % 1.0


def numeric_grad(f, args, argnums, gradients, step=1e-3, tolerance=2e-2):
    """Compares gradients with central differences along one random direction, in double precision."""
    for n, g in zip(argnums, gradients, strict=True):
        x = np.asarray(args[n])
        if x.dtype.kind == "c" or x.dtype.itemsize < 4 or not x.size:
            continue  # directions in the complex plane follow jax's convention; narrow types are too coarse
        direction = rng("direction", x.shape).standard_normal(x.shape)
        with phlox.enable_x64(True):
            wide = [np.asarray(a, np.float64) if np.asarray(a).dtype.kind == "f" else a for a in args]

            def at(t, n=n, wide=wide, direction=direction):
                moved = list(wide)
                moved[n] = wide[n] + t * direction
                return float(f(*moved))

            slope = (at(step) - at(-step)) / (2 * step)
        expected = float(np.sum(np.asarray(g, np.float64) * direction))
        scale = max(1.0, abs(slope), float(np.abs(np.asarray(g, np.float64)).max()))
        assert abs(slope - expected) <= tolerance * scale, f"argument {n}: grad {expected}, differences {slope}"


def agree_vmap(case, *args, axes=None, tolerance=None, exact=False):
    """Compares vmap of a case over each argument alone and over all together with a loop over the examples.

    `args` are single examples; the batch is made of them by random changes. `axes` lists what is mapped.
    """
    random = rng("vmap", len(args))
    size = 3
    every = [tuple(i == j for j in range(len(args))) for i in range(len(args))] + [(True,) * len(args)]
    for mapped in axes or every:
        for place in (0, -1):
            stacked, in_axes = [], []
            for x, use in zip(args, mapped, strict=True):
                x = np.asarray(x)
                if not use:
                    stacked.append(x)
                    in_axes.append(None)
                    continue
                examples = [x] + [_perturbed(x, random) for _ in range(size - 1)]
                at = 0 if place == 0 else x.ndim
                stacked.append(np.stack(examples, at))
                in_axes.append(at)
            if all(a is None for a in in_axes):
                continue
            batched = phlox.vmap(lambda *xs: case(phlox, *xs), in_axes=tuple(in_axes))(*stacked)
            for k in range(size):
                example = [s if a is None else np.take(s, k, a) for s, a in zip(stacked, in_axes, strict=True)]
                single = case(phlox, *example)
                for whole, one in zip(_leaves(phlox, batched), _leaves(phlox, single), strict=True):
                    whole, one = to_host(whole)[0][k], to_host(one)[0]
                    same_values(whole, one, tolerance=tolerance, exact=exact, what=f"vmap over {in_axes}, example {k}")


def _perturbed(x, random):
    if x.dtype == bool:
        return random.integers(0, 2, x.shape).astype(bool)
    if x.dtype.kind in "iu":
        return random.permutation(x.ravel()).reshape(x.shape) if x.size > 1 else x
    return (x * random.uniform(0.5, 1.0, x.shape)).astype(x.dtype)


def both(*paths):
    """The same function of both libraries, by its path: ``both("numpy.sin")`` -> (phlox's, jax's)."""
    found = []
    for module in (phlox, jax):
        for path in paths:
            x = module
            for part in path.split("."):
                x = getattr(x, part)
            found.append(x)
    return types.SimpleNamespace(phlox=found[0], jax=found[1])
