"""Primitives with drawn wrong parameters and operands: each refuses by itself, with one of phlox's errors.

What XLA refuses, or what Python says of a value of another kind (no attribute, index out of range), never reaches a
user. Programs, functions and meshes among the parameters are left as they are: only phlox's own functions make them.
"""

import warnings

import numpy as np
import pytest

import phlox
from judge import CASES, rng
from phlox import errors
from phlox._ir.primitive import primitive
from phlox._ops import all_primitives
from registry_examples import ELSEWHERE, OF_COMPAT, examples

with phlox.enable_x64(True):
    TABLE = examples()
NAMES = sorted(set(all_primitives()) - set(ELSEWHERE) - OF_COMPAT)
#: they hold programs, whose operands have the types that the programs were traced with
OF_PROGRAMS = {
    "composite",
    "cond",
    "custom_linear_solve",
    "linear_call",
    "platform_index",
    "remat_opt",
    "scan",
    "scan_states",
    "shard_map",
    "while",
    "while_states",
}


def other_value(r, value):
    """A value that was meant for something else than `value`."""
    if isinstance(value, bool):
        return (not value, None)[r.integers(2)]
    if isinstance(value, int | np.integer):
        return (value + 1, value - 1, -5, 1000, None, 0, "x", 2.5)[r.integers(8)]
    if isinstance(value, np.dtype):
        return np.dtype(("int8", "bool", "complex64", "float16")[r.integers(4)])
    if isinstance(value, str):
        return ("no", None, 3)[r.integers(3)]
    if value is None:
        return (0, (0,), "x", -1)[r.integers(4)]
    if hasattr(value, "_fields"):
        field = value._fields[r.integers(len(value))]
        return value._replace(**{field: other_value(r, getattr(value, field))})
    if isinstance(value, tuple):
        at = r.integers(len(value)) if value else 0
        inner = (*value[:at], other_value(r, value[at]), *value[at + 1 :]) if value else (0,)
        others = (value[:-1], value + value[:1], value[::-1], inner, (-1,) * len(value), None, (7,) * len(value))
        return others[r.integers(len(others))]
    return value


def other_operand(r, x):
    """An operand of another rank, dtype or length."""
    if not hasattr(x, "shape") or not isinstance(getattr(x, "dtype", None), np.dtype):
        return x
    x = np.asarray(x)
    dtype = ("int8", "bool", "complex64", "float16", "uint32", "int64")[r.integers(6)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of imaginary parts that are dropped
        others = (x[None], x[..., None], x[0] if x.size and x.ndim else x[None], x.astype(dtype))
    return (*others, np.repeat(x, 2, -1) if x.ndim else x)[r.integers(5)]


@pytest.mark.parametrize("name", [n for n in NAMES if primitive(n).steps is None and n not in OF_PROGRAMS])
def test_each_primitive_refuses_by_itself(name):
    for number, example in enumerate(TABLE[name]):
        for draw in range(2 * CASES):
            r = rng("bad parameters", name, number, draw)
            args, params = list(example.args), dict(example.params)
            if params and (r.random() < 0.6 or not args):
                changed = sorted(params)[r.integers(len(params))]
                params[changed] = other_value(r, params[changed])
            elif args:
                at = r.integers(len(args))
                args[at] = other_operand(r, args[at])
            with phlox.enable_x64(True):
                try:
                    primitive(name).bind(*args, **params)
                except errors.PhloxError as error:
                    assert not isinstance(error, errors.CompilationError), f"{params} of {args}"
