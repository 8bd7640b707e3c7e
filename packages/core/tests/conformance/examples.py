"""For each public function the calls that show most of it, which the tests of batches and of derivatives go through.

They are those rows of the tables that jax accepts, and programs for functions that take functions or descriptions.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import phlox
from conformance import (
    test_fft,
    test_image,
    test_lax_convolutions,
    test_lax_elementwise,
    test_lax_products,
    test_lax_structural,
    test_lax_windows,
    test_linalg,
    test_numpy_creation,
    test_numpy_differences,
    test_numpy_elementwise,
    test_numpy_functional,
    test_numpy_indexing,
    test_numpy_polynomials,
    test_numpy_products,
    test_numpy_reductions,
    test_numpy_shapes,
    test_numpy_statistics,
    test_scipy_fft,
    test_scipy_others,
    test_scipy_signal,
    test_scipy_special,
    test_scipy_stats,
    test_special,
)
from conformance.harness import A, Special, _slots, case_of, inputs
from conformance.programs import PROGRAMS, F
from registry_examples import FORMULAS, FORMULAS_OF_TWO

TESTS = [
    test_numpy_elementwise,
    test_numpy_reductions,
    test_numpy_shapes,
    test_numpy_products,
    test_numpy_creation,
    test_numpy_differences,
    test_numpy_functional,
    test_numpy_indexing,
    test_numpy_polynomials,
    test_numpy_statistics,
    test_lax_elementwise,
    test_lax_products,
    test_lax_structural,
    test_special,
    test_scipy_special,
    test_scipy_stats,
    test_linalg,
    test_fft,
    test_lax_convolutions,
    test_lax_windows,
    test_image,
    test_scipy_fft,
    test_scipy_others,
    test_scipy_signal,
]
MODULES = ["numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg", "ops", "image"]


@dataclasses.dataclass(frozen=True)
class Example:
    """A call as a function of a library and of arrays; `differentiable` says whether jax has a derivative of it."""

    what: str
    run: Callable[..., Any]
    args: list[Any]
    differentiable: bool = True
    elementwise: bool = False
    tolerance: float | None = None

    @property
    def arrays(self):
        return [i for i, x in enumerate(self.args) if isinstance(x, np.ndarray)]

    @property
    def floats(self):
        return tuple(i for i in self.arrays if self.args[i].dtype.kind not in "biu")


@functools.cache
def rows_of():
    """The rows of each function, of all tables."""
    found = {}
    for module in TESTS:
        for r in module.TABLE:
            found.setdefault(r.path, []).append(r)
    return found


@functools.cache
def functions():
    """The paths of all public functions, `numpy.sin`; of one that has several names the first."""
    found = {}
    for path in MODULES:
        module = functools.reduce(getattr, path.split("."), phlox)
        for name in getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]:
            x = getattr(module, name)
            if callable(x) and not inspect.isclass(x) and not name.endswith("_p") and not name.startswith("__"):
                found.setdefault(id(x), f"{path}.{name}")
    return list(found.values())


@functools.cache
def elementwise():
    """Functions of elements alone: batches and derivatives of them are made of one rule.

    test_elementwise_transforms compares them.
    """
    tables = (test_numpy_elementwise.ELEMENTWISE, test_lax_elementwise.TABLE, test_special.TABLE)
    found = {r.path for table in tables for r in table}
    return found - {"numpy.allclose", "numpy.array_equal", "numpy.array_equiv"}  # which compare whole arrays


def candidates(path, prefer):
    """(row, call, dtype) of all calls of arrays in general position: the first, then those with most arrays, in the
    preferred dtypes first."""
    found = []
    for r in rows_of().get(path, []):
        dtypes = [d for d in prefer if d in r.dtypes] or r.dtypes[:1]
        for i, c in enumerate(r.calls):
            slots = _slots(c, [])
            arrays = [s for s in slots if isinstance(s, A)]
            if not arrays or any(isinstance(s, Special) for s in slots) or any(s.whole or 0 in s.shape for s in arrays):
                continue
            size = -len(arrays), -sum(len(s.shape) for s in arrays), i
            found += [((place, *(size if found else ())), r, c, dtype) for place, dtype in enumerate(dtypes)]
    return [x[1:] for x in sorted(found, key=lambda x: x[0])]


def widened(x):
    kind = x.dtype.kind if isinstance(x, np.ndarray) else None
    return x.astype({"f": np.float64, "c": np.complex128}[kind]) if kind in ("f", "c") else x


def accepted(example):
    try:
        jax.eval_shape(functools.partial(example.run, jax), *example.args)
    except Exception:
        return False
    return True


def _program_of_formula(path):
    """A call of a function that JAX lacks, with operands from the range that the tables of formulas have for it."""
    module, _, name = path.rpartition(".")
    if not has_formula(module, name):
        return []
    low, high, _, *params = FORMULAS.get(name) or FORMULAS_OF_TWO[name]
    operands = [F(4, low=low, high=high, seed=seed) for seed in range(1 if name in FORMULAS else 2)]
    params = dict(*params) if name in FORMULAS else {}
    return [(lambda m, *xs: getattr(getattr(m, module), name)(*xs, **params), tuple(operands))]


def has_formula(module, name):
    """Whether the tables of formulas, in place of jax, say what a function of `phlox.lax` or `phlox.numpy` computes."""
    return module in ("lax", "numpy") and name in FORMULAS | FORMULAS_OF_TWO and not hasattr(getattr(jax, module), name)


@functools.cache
def examples(path, prefer=("float32", "int32", "complex64"), count=2, wide=False):
    """The programs of a function; or at most `count` calls: its first, and the one with most arrays.

    With `wide` the arrays have double precision; then 64 bits must be on.
    """
    programs = PROGRAMS.get(path) or _program_of_formula(path)
    found = [Example(f"{path} {i}", run, list(args)) for i, (run, args) in enumerate(programs)]
    for r, c, dtype in candidates(path, prefer):
        if len(found) >= max(count, len(programs)):
            break
        args = [widened(x) for x in inputs(r, c, dtype)] if wide else inputs(r, c, dtype)
        example = Example(repr(c), case_of(r, c), args, r.grad, path in elementwise(), r.tolerance)
        if all(e.what != example.what for e in found) and accepted(example):
            found.append(example)
    return found
