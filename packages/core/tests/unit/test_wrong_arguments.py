"""Public functions that are given nonsense, drawn from a fixed seed: what they raise says what was wrong.

It is an error of phlox, or one of Python's that speaks of the argument (a TypeError for a missing or unknown parameter,
for an object of another kind, a ValueError): no failed assertion, no missing attribute, no index out of range, no text
of the compiler's.
"""

import inspect
import warnings

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
import phlox.scipy.linalg
import phlox.scipy.special
import phlox.scipy.stats
from judge import CASES, rng
from phlox import errors


class Odd:
    """An object that is nothing to any function."""


NONSENSE = [
    None, "x", -1, 7, 2.5, 1j, [0], [], (), (1, 2), [[1, 2], [3]], {}, Odd(), object, np.zeros((2, 3)), np.zeros(0),
    np.array("s"), np.array([None]), True, jnp.zeros((2, 2)), jnp.arange(3), slice(1), lambda x: x, float("inf"),
    float("nan"), jnp.int8, "float32", range(2),
]  # fmt: skip
SENSE = [jnp.ones((2, 3)), jnp.arange(4), jnp.ones((2, 2)), phlox.random.key(0)]
MODULES = {
    "numpy": jnp,
    "numpy.linalg": jnp.linalg,
    "numpy.fft": jnp.fft,
    "lax": phlox.lax,
    "random": phlox.random,
    "nn": phlox.nn,
    "scipy.special": phlox.scipy.special,
    "scipy.linalg": phlox.scipy.linalg,
    "scipy.stats.norm": phlox.scipy.stats.norm,
    "tree": phlox.tree,
}
#: they read or write files, change how NumPy prints, or may run for ever
LEFT_OUT = {"load", "save", "savez", "fromfile", "frombuffer", "fromstring", "set_printoptions", "while_loop"}
#: NumPy's own functions, or opt_einsum's, which say it in their words
NOT_OURS = {"numpy.array_repr", "numpy.array_str", "numpy.einsum_path"}
UNCLEAR = (AssertionError, AttributeError, LookupError, ArithmeticError, UnboundLocalError, errors.CompilationError)


def functions(module):
    for name in sorted(getattr(module, "__all__", None) or dir(module)):
        found = getattr(module, name, None)
        plain = callable(found) and not inspect.isclass(found) and not inspect.ismodule(found)
        if plain and not name.startswith("_") and not name.endswith("_p") and name not in LEFT_OUT:
            yield name, found


def parameters(function):
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []


@pytest.mark.parametrize("where", MODULES)
def test_nonsense_is_told(where):
    for name, function in functions(MODULES[where]):
        given = parameters(function)
        required = sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in given)
        optional = [p.name for p in given if p.default is not p.empty and p.kind is not p.POSITIONAL_ONLY]
        for draw in range(2 * CASES):
            r = rng("nonsense", where, name, draw)
            kinds = [NONSENSE if r.random() < 0.6 else SENSE for _ in range(max(1, required))]
            args = [kind[r.integers(len(kind))] for kind in kinds]
            kwargs = {}
            if optional and r.random() < 0.5:
                kwargs[optional[r.integers(len(optional))]] = NONSENSE[r.integers(len(NONSENSE))]
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    function(*args, **kwargs)
            except Exception as error:
                if f"{where}.{name}" in NOT_OURS:
                    continue
                told = isinstance(error, errors.PhloxError) or str(error).strip()
                clear = not isinstance(error, UNCLEAR) or (
                    isinstance(error, errors.PhloxError) and not isinstance(error, errors.CompilationError)
                )
                assert told and clear, f"{where}.{name} of {args}, {kwargs}: {error!r}"


EYES = [jnp.eye(2), jnp.eye(2)]
#: calls that were answered with an empty assertion, an index out of range, or a missing attribute
NAMED = {
    "matrix_transpose": lambda: jnp.matrix_transpose([0]),
    "ravel_multi_index": lambda: jnp.ravel_multi_index(None, -1),
    "array_split": lambda: jnp.array_split(jnp.arange(3), None),
    "argsort": lambda: jnp.argsort(jnp.arange(3), stable=2),
    "histogramdd": lambda: jnp.histogramdd(jnp.arange(3.0)),
    "split into no parts": lambda: jnp.split(jnp.arange(3), 0),
    "fftshift": lambda: jnp.fft.fftshift(1.0, axes=-1),
    "glu": lambda: phlox.nn.glu(7),
    "dtype of text": lambda: jnp.astype(jnp.ones(2), np.array("s")),
    "unflatten": lambda: phlox.tree.unflatten([0], [1]),
    "dot_general over an axis from the end": lambda: phlox.lax.dot_general(*EYES, (((-1,), (0,)), ((), ()))),
    "dot_general over an axis twice": lambda: phlox.lax.dot_general(*EYES, (((1,), (0,)), ((1,), (0,)))),
    "sort of nothing": lambda: phlox.lax.sort(()),
    "cumlogsumexp along a part of an axis": lambda: phlox.lax.cumlogsumexp(jnp.ones(2), 0.5),
    "approx_max_k of a part that is larger than the whole": lambda: phlox.lax.approx_max_k(
        jnp.ones(3), 1, reduction_input_size_override=2
    ),
    "associative_scan of nothing": lambda: phlox.lax.associative_scan(lambda a, b: a, ()),
    "map with a negative batch": lambda: phlox.lax.map(lambda x: x, jnp.ones(2), batch_size=-1),
    "fft over four axes": lambda: phlox.lax.fft(jnp.ones((2, 2, 2, 2)), "fft", (2, 2, 2, 2)),
    "conv_general_permutations of two words": lambda: phlox.lax.conv_general_permutations(("NHWC", "HWIO")),
    "padding for a window that stands still": lambda: phlox.lax.padtype_to_pads((5,), (2,), (0,), "SAME"),
    "rem of bools": lambda: phlox.lax.rem(True, True),
}


@pytest.mark.parametrize("name", NAMED)
def test_named_calls(name):
    with pytest.raises(errors.PhloxError) as raised:
        NAMED[name]()
    assert not isinstance(raised.value, errors.CompilationError)
