"""Public functions of arrays say what they take: few of their parameters are `Any`, or without an annotation."""

import importlib
import inspect

import pytest

#: Modules whose parameters are arrays, numbers, shapes, dtypes and keys; those of pytrees take anything by their nature.
MODULES = [
    "numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg", "random", "nn", "nn.initializers", "ops", "image",
    "scipy.special", "scipy.linalg", "scipy.stats.norm",
]  # fmt: skip
MOST = 0.05


@pytest.mark.parametrize("name", MODULES)
def test_few_parameters_are_any(name):
    module = importlib.import_module(f"phlox.{name}")
    total, untyped = 0, []
    for entry in dir(module):
        value = getattr(module, entry)
        ours = (getattr(value, "__module__", None) or "").startswith("phlox")
        if not ours or not callable(value) or isinstance(value, type) or entry.endswith("_p"):
            continue
        for parameter in inspect.signature(value).parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            total += 1
            if parameter.annotation in ("Any", parameter.empty):
                untyped.append(f"{entry}({parameter.name})")
    assert total, f"phlox.{name} has no functions"
    assert len(untyped) <= MOST * total, f"{len(untyped)} of {total} parameters are Any: {', '.join(untyped)}"
