"""Which public names of a module no test names, and which functions have other parameters than jax's."""

import inspect
import pathlib
import re

import jax
import numpy as np

import phlox


def member(library, path):
    for part in filter(None, path.split(".")):
        library = getattr(library, part)
    return library


def public(path):
    """What a module offers, without its submodules, the primitives, and what is in a package that is not installed."""
    module = member(phlox, path)
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    values = {n: getattr(module, n, None) for n in names if not n.startswith("__") and not n.endswith("_p")}
    return [n for n, value in values.items() if value is not None and not inspect.ismodule(value)]


def not_named(path, tests):
    """The public names of the module `path` that are not in the text of the modules `tests`."""
    text = "\n".join(pathlib.Path(module.__file__).read_text() for module in tests)
    return [name for name in sorted(set(public(path))) if not re.search(rf"""(\.|["' ]){re.escape(name)}\b""", text)]


#: Parameters that one of the two has not: where jax's own modules with one function differ, and what phlox adds.
ABSENT_OF = {
    "jit": {"buckets", "checks", "compile_effort", "max_traces", "sizes"},
    "cond": {"batching"},
    "switch": {"batching"},
    "fori_loop": {"checkpoints", "progress"},
    "scan": {"checkpoints", "progress"},
    "while_loop": {"checkpoints", "max_steps", "progress"},
    "minimize": {"bounds"},
    "array": {"args"},
    "checkpoint": {"concrete"},
    "remat": {"concrete", "static_argnames"},
    "static": {"options", "kwargs"},
    "set_printoptions": set(inspect.signature(np.set_printoptions).parameters) | {"args", "kwargs"},
    "trunc": {"x"},
}


#: Parameters that jax has since 0.12 alone, and the name of one before.
if jax.__version_info__ < (0, 12):
    ABSENT_OF |= {
        "beta": {"method"},
        "chisquare": {"method"},
        "custom_gradient": {"remat", "with_logs"},
        "empty_ref": {"pin"},
        "erfc": {"accuracy"},
        "gamma": {"method"},
        "histogram": {"out_sharding"},
        "lexsort": {"batch_size"},
        "linearize": {"in_nzs"},
        "loggamma": {"method"},
        "make_mesh": {"axis_shapes", "axis_sizes"},
        "new_ref": {"pin"},
        "one_hot": {"out_sharding"},
        "poisson": {"method"},
        "reduce_max": {"out_sharding"},
        "reduce_min": {"out_sharding"},
        "top_k": {"is_stable"},
        "vjp": {"saveable_args", "in_nzs"},
    }


def parameters(name, function):
    try:
        arguments = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return [(p.name, p.kind) for p in arguments if p.name not in ABSENT_OF.get(name, set())]


def differing_signatures(path):
    """The functions of the module `path` whose parameters are not those of jax, in words."""
    wrong = []
    for name in public(path):
        mine, theirs = getattr(member(phlox, path), name), getattr(member(jax, path), name, None)
        if not callable(mine) or not callable(theirs) or inspect.isclass(mine) or name == "random_gamma_grad":
            continue
        ours, expected = parameters(name, mine), parameters(name, theirs)
        if ours is None or expected is None:
            continue
        # What is given by position alone may be called anything.
        spell = lambda ps: [(n if kind is not inspect.Parameter.POSITIONAL_ONLY else "_", kind) for n, kind in ps]
        if name == "array":  # jax takes the arguments after dtype by position through *args, with a warning
            spell = lambda ps: [n for n, _ in ps]
        if spell(ours) != spell(expected):
            wrong.append(f"{name}({', '.join(n for n, _ in ours)}), jax: {name}({', '.join(n for n, _ in expected)})")
    return wrong
