"""Whole programs, compiled or eager, at sizes where a call is work: beside jax, torch and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import beside
from ..case import BOTH, CASES, Case
from ..programs import EAGER, LARGE, PROGRAMS

#: those that `--quick` runs: of each kind one that compiles soon
_QUICK = frozenset({"cnn", "gnn", "eager script"})


def _calls(name: str) -> Callable[[Any], Any]:
    """Function of the library that returns a call of the program."""

    def make(m: Any) -> Any:
        if m.__name__ == "numpy":
            return beside.numpy_call(name)
        if m.__name__ == "torch":
            return beside.torch_call(m.torch, name)
        function, arguments = PROGRAMS[name](m, **LARGE[name])
        run = function if name in EAGER else m.jit(function)
        return lambda: m.block_until_ready(run(*arguments))

    return make


for _name in PROGRAMS:
    _others = [
        x for x, found in (("torch", {*beside.TORCH, *beside.LOSSES}), ("numpy", beside.NUMPY)) if _name in found
    ]
    CASES[f"programs/{_name}"] = Case(
        f"programs/{_name}",
        _calls(_name),
        libraries=(*BOTH, *_others),
        budget=1.05,
        quick=_name in _QUICK,
        same=("phlox",) if _name in beside.RANDOM else ("phlox", *_others),
    )
