"""The import hook for ``phlox_optim._vendor.optax`` and ``phlox_optim._vendor.jax``."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.abc import InspectLoader, Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType

from phlox.extend import hide_frames

from ..errors import MissingExtraError
from .facade import View, importing
from .rewrite import ROOTS, code_of


class Finder(MetaPathFinder):
    """Finds the modules of these two private packages only.

    `folder` is the folder of optax; None: the one that Python would import.
    """

    def __init__(self, folder: str | None = None):
        self._folder = folder

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        for name, root in ROOTS.items():
            if fullname == root or fullname.startswith(root + "."):
                rest = fullname[len(root) + 1 :]
                return self._optax(fullname, rest) if name == "optax" else _facade(fullname, rest)
        return None

    def _optax(self, fullname: str, rest: str) -> ModuleSpec | None:
        if self._folder is None:
            self._folder = _installed()
        base = os.path.join(self._folder, *rest.split(".")) if rest else self._folder
        if os.path.isdir(base):
            # Not every folder of optax has an __init__.py. Python's finder for namespace packages would import the
            # parent by its public name, which must not happen.
            loader = _OptaxLoader(os.path.join(base, "__init__.py"))
            return importlib.util.spec_from_loader(fullname, loader, origin=loader.path, is_package=True)
        if os.path.isfile(base + ".py"):
            loader = _OptaxLoader(base + ".py")
            return importlib.util.spec_from_loader(fullname, loader, origin=loader.path, is_package=False)
        return None


def _installed() -> str:
    """The folder of the optax that ``import optax`` would import, found without importing it."""
    known = sys.modules.get("optax")
    spec = known.__spec__ if known is not None else importlib.util.find_spec("optax")
    if spec is None or not spec.submodule_search_locations:
        command = "pip install optax"
        raise MissingExtraError(
            "phlox_optim runs optax, which is not installed here", instead=command, command=command, name="optax"
        )
    folder = next(iter(spec.submodule_search_locations))
    hide_frames(folder)  # so that errors point at the user's line
    return folder


class _OptaxLoader(InspectLoader):
    """Runs a file of optax as a private module. Does not read or write the .pyc files of the public one."""

    def __init__(self, path: str):
        self.path = path

    def get_source(self, fullname: str) -> str:
        return importlib.util.decode_source(self._bytes())

    def get_code(self, fullname: str) -> CodeType:
        return code_of(self._bytes(), self.path)

    def is_package(self, fullname: str) -> bool:
        return os.path.basename(self.path) == "__init__.py"

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = self.path
        with importing:
            super().exec_module(module)

    def _bytes(self) -> bytes:
        try:
            with open(self.path, "rb") as file:
                return file.read()
        except FileNotFoundError:  # a folder without __init__.py
            return b""


def _facade(fullname: str, rest: str) -> ModuleSpec | None:
    dot = "." if rest else ""
    name, target = "phlox" + dot + rest, None
    try:
        target = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise  # phlox has the module, and one of its own imports is missing
        if not importing.depth:
            return None
    return importlib.util.spec_from_loader(fullname, _ViewLoader("jax" + dot + rest, target), is_package=True)


class _ViewLoader(Loader):
    def __init__(self, jax_name: str, target: ModuleType | None):
        self._jax_name = jax_name
        self._target = target

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return View(spec.name, self._jax_name, self._target)

    def exec_module(self, module: ModuleType) -> None:
        pass
