"""Parameters and defaults of public functions are those of jax 0.12."""

import importlib
import inspect

import jax
import pytest

import phlox

MODULES = [
    "", "ad_checkpoint", "custom_batching", "custom_derivatives", "debug", "dlpack", "dtypes", "export", "experimental",
    "experimental.multihost_utils", "experimental.sparse", "ffi", "flatten_util", "image", "lax", "lax.linalg", "monitoring",
    "nn", "nn.initializers", "numpy", "numpy.fft", "numpy.linalg", "ops", "profiler", "random", "ref", "scipy.cluster.vq",
    "scipy.fft", "scipy.integrate", "scipy.interpolate", "scipy.linalg", "scipy.ndimage", "scipy.optimize", "scipy.signal",
    "scipy.sparse.linalg", "scipy.spatial.transform", "scipy.special", "scipy.stats", "sharding", "test_util", "tree",
    "tree_util",
]  # fmt: skip

# (function, parameter): why it differs
DIFFERENCES = {
    ("ShapeDtypeStruct", "_memory_space"): "private",
    ("custom_gradient", "with_accums"): "docs/conformance.md",
    ("ds", "size"): "no size means a slice from zero, as None does",
    ("einsum", "_dot_general"): "private",
    ("jit", "in_shardings"): "None says the same",
    ("jit", "out_shardings"): "None says the same",
    ("jit", "fun"): "None says the same",
    ("take_along_axis", "wrap_negative_indices"): "True, except where the mode says that indices are in bounds",
    ("vectorize", "excluded"): "an empty tuple says the same",
}
MADE_BY_PHLOX_ONLY = {"Exported", "ProcessFailureError", "Shard"}
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def functions(path):
    """(name, jax's function, phlox's) of a module."""
    theirs, mine = (importlib.import_module(f"{root}.{path}".rstrip(".")) for root in ("jax", "phlox"))
    for name in dir(theirs):
        value = getattr(theirs, name)
        other = getattr(mine, name, None)
        if (
            name.startswith("_")
            or name in MADE_BY_PHLOX_ONLY
            or other is None
            or not callable(value)
            or not callable(other)
        ):
            continue
        if (getattr(value, "__module__", None) or "").startswith("jax") and not hasattr(value, "dtype"):
            yield name, value, other


def says_the_same(theirs, mine):
    """Whether two defaults have one meaning: equal ones, functions, and objects that say that nothing was given."""
    for default in (theirs, mine):
        if type(default).__module__.startswith(("jax.", "phlox.")) or type(default) is object:
            return True  # an object that says that nothing was given
    return (callable(theirs) and callable(mine)) or repr(theirs) == repr(mine) or theirs == mine


def differences(name, theirs, mine):
    """What the signature of `mine` lacks."""
    for p in theirs.values():
        if p.kind not in NAMED or (name, p.name) in DIFFERENCES:
            continue
        q = mine.get(p.name)
        if q is None or q.kind not in NAMED:
            yield f"{name}: no parameter {p.name}"
        elif not says_the_same(p.default, q.default) and q.default is inspect.Parameter.empty:
            yield f"{name}: {p.name} has no default"
        elif p.kind is NAMED[0] and q.kind is not p.kind:
            yield f"{name}: {p.name} only by its name"
        elif p.default is not inspect.Parameter.empty and not says_the_same(p.default, q.default):
            yield f"{name}: {p.name}={q.default!r} instead of {p.default!r}"
    positional = [p.name for p in theirs.values() if p.kind is NAMED[0]]
    if positional != [p.name for p in mine.values() if p.kind is NAMED[0]][: len(positional)]:
        yield f"{name}: another order than {positional}"


@pytest.mark.skipif(jax.__version_info__ < (0, 12), reason="signatures of jax 0.12")
@pytest.mark.whole
@pytest.mark.parametrize("path", MODULES)
def test_parameters_and_defaults_are_those_of_jax(path):
    problems = []
    for name, value, other in functions(path):
        try:
            theirs = inspect.signature(value).parameters
        except ValueError:  # a class of C++
            continue
        problems += differences(name, theirs, inspect.signature(other).parameters)
    assert not problems


def test_differences_are_seen():
    def theirs(a, b=1, *, c=None): ...
    def mine(a, c, *, b=2): ...  # fmt: skip

    found = list(differences("f", inspect.signature(theirs).parameters, inspect.signature(mine).parameters))
    assert found == ["f: b only by its name", "f: c has no default", "f: another order than ['a', 'b']"]
    assert phlox.jit is not None
