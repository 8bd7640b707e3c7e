"""The import hook that finds the modules of jax in phlox, under their own names or below a private package."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType

from .. import jax_internals
from ..jax_internals import _tracebacks
from . import _views

#: The modules below jax that are in `sys.modules` after ``import jax``. Libraries look there: array_api_compat and
#: SciPy take an array for one of jax only if a module that is loaded has its class, ``jax.Array`` or
#: ``jax.core.Tracer``.
_IMPORTED_BY_JAX = """
    api_util core custom_batching custom_derivatives debug distributed dlpack dtypes errors experimental export
    ffi image interpreters interpreters.ad interpreters.batching interpreters.mlir interpreters.partial_eval
    interpreters.pxla interpreters.xla lax lax.linalg monitoring nn nn.initializers numpy numpy.fft numpy.linalg
    ops profiler random ref scipy sharding stages tree tree_util typing version
"""


class JaxFinder(MetaPathFinder):
    """Finds ``jax`` and all modules below it. `prefix` stands before these names: ``phlox.adopted.`` for copies."""

    def __init__(self, prefix: str = ""):
        self._prefix = prefix
        self._root = prefix + "jax"
        _tracebacks.mark_transformations()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._root and not fullname.startswith(self._root + "."):
            return None
        jax_name = fullname[len(self._prefix) :]
        if jax_name.removeprefix("jax.") in _IMPORTED_BY_JAX.split():
            loader = _ViewLoader(jax_name, functools.partial(_module, jax_name))
            return importlib.util.spec_from_loader(fullname, loader, is_package=True)
        module = None if jax_name in jax_internals.UNAVAILABLE else _module(jax_name)
        if module is None and (jax_name in jax_internals.UNAVAILABLE or not jax_internals.has_module(jax_name)):
            frame = _views.importer()
            if _from_list() or not _views.excused(frame):
                error = _views.missing(jax_name, frame, importing=True)
                error.name = fullname
                raise error
        return importlib.util.spec_from_loader(fullname, _ViewLoader(jax_name, lambda: module), is_package=True)


def _from_list() -> bool:
    """Whether ``from package import name`` is looking whether the name is a submodule; if not, it reads the name."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename in (__file__, "<frozen importlib._bootstrap>"):
        if frame.f_code.co_name == "_handle_fromlist":
            return True
        frame = frame.f_back
    return False


def _module(jax_name: str) -> ModuleType | None:
    """The module of phlox for this module of jax, or None."""
    name = "phlox" + jax_name.removeprefix("jax")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise  # phlox has the module, and one of its own imports is missing
    parent, _, last = name.rpartition(".")
    if not parent or jax_internals.has_module(jax_name):
        return None
    try:  # some modules are attributes of their parents only
        attribute = getattr(importlib.import_module(parent), last, None)
    except ModuleNotFoundError:
        return None
    return attribute if isinstance(attribute, ModuleType) else None


class _ViewLoader(Loader):
    def __init__(self, jax_name: str, find_target: Callable[[], ModuleType | None]):
        self._jax_name = jax_name
        self._find_target = find_target

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _views.View(spec.name, self._jax_name, self._find_target)

    def exec_module(self, module: ModuleType) -> None:
        """Imports the submodules that `jax` itself imports, before the program's statement goes on."""
        if self._jax_name == "jax":
            for name in _IMPORTED_BY_JAX.split():
                importlib.import_module(f"{module.__name__}.{name}")
