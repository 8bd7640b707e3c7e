"""Private copies of installed libraries that run on phlox, beside the libraries themselves on the real jax.

    phlox.adopted.optax      optax's own files, loaded a second time
    phlox.adopted.jax        what these files import as jax: views of phlox

A copy runs the library's own bytecode. Only ``__import__`` is another: each module of a copy has builtins of its own,
in which the import of jax, or of a library that is built on jax, leads to ``phlox.adopted``. So copies see each other,
nothing is compiled twice, and tracebacks and `inspect` show the library's files. The names are importable: functions
and classes of a copy are pickled as usual, and found again in another process.
"""

from __future__ import annotations

import builtins
import functools
import gc
import importlib
import importlib.util
import re
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

from phlox.errors import AdoptionError
from phlox.extend import hide_frames

PREFIX = "phlox.adopted."

#: libraries built on jax whose distributions have other names, or do not say that they need jax
_KNOWN = frozenset(("haiku", "jax", "jaxtyping", "jmp", "orbax", "tensorflow_probability"))
_adopted: set[str] = set()


def adopt(*names: str) -> Any:
    """Private copies of installed libraries that run on phlox.

    The libraries themselves, and the real jax, may be imported in the same process; nothing of theirs is changed.
    Libraries that a copy imports and that are built on jax become copies too: a copy of flax uses that of optax. The
    copies can also be imported, once this function or ``import phlox.adopted`` has run: ``from phlox.adopted import
    optax``. ``equinox, optax = phlox.adopt("equinox", "optax")`` makes two.

    Args:
      *names: names to import, such as ``"equinox"``, or files (``*.txt``) that list them, one a line.

    Returns:
      The module; for several names a tuple of modules.

    Raises:
      AdoptionError: a library is not installed.
      MissingNameError: a library uses a name of jax that phlox does not have.

    >>> phlox.adopt("no_such_library")
    Traceback (most recent call last):
    ...
    phlox.errors.AdoptionError: phlox.adopt: there is no library 'no_such_library' here
      at ...
      instead: pip install no_such_library
    """
    listed = [name for argument in names for name in (_read(argument) if argument.endswith(".txt") else [argument])]
    roots = {name.partition(".")[0] for name in listed}
    _adopted.update(roots)
    try:
        modules = tuple(importlib.import_module(PREFIX + name) for name in listed)
    except BaseException:
        _adopted.difference_update(root for root in roots if PREFIX + root not in sys.modules)
        raise
    return modules[0] if len(modules) == 1 and not names[0].endswith(".txt") else modules


def _read(path: str) -> list[str]:
    with open(path, encoding="utf-8") as file:
        lines = (line.partition("#")[0].strip() for line in file)
        return [line for line in lines if line]


@functools.cache
def _is_built_on_jax(root: str) -> bool:
    """Whether a package is jax, or needs jax according to the metadata of its distribution."""
    if root in _KNOWN:
        return True
    if root in sys.stdlib_module_names or root in ("numpy", "scipy", "jaxlib", "phlox", "phlox_compat"):
        return False
    # Not `metadata.requires`, which imports modules: some libraries replace ``__import__`` while they import others.
    context = metadata.DistributionFinder.Context(name=root)
    distribution = next(iter(metadata.MetadataPathFinder.find_distributions(context)), None)
    if distribution is None:
        return False
    text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO")
    return re.search(r"^Requires-Dist: jax\b(?!.*extra ==)", text or "", re.MULTILINE) is not None


def is_copied(root: str) -> bool:
    """Whether copies import a copy of this package."""
    return root in _adopted or _is_built_on_jax(root)


def private(name: str) -> str:
    """The name under which copies import the module `name`."""
    return PREFIX + name if is_copied(name.partition(".")[0]) else name


def _import(
    name: str,
    globals: Mapping[str, Any] | None = None,
    locals: Mapping[str, Any] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Any:
    """``__import__`` for the modules of copies."""
    if level == 0:
        root = name.partition(".")[0]
        if root == "importlib":
            importlib_module = builtins.__import__(name, globals, locals, fromlist, 0)
            return _Importlib(importlib_module)
        if is_copied(root):
            module = builtins.__import__(PREFIX + name, globals, locals, fromlist or ("__name__",), 0)
            return module if fromlist else sys.modules[PREFIX + root]
    return builtins.__import__(name, globals, locals, fromlist, level)


class _Importlib(ModuleType):
    """`importlib` or `importlib.util` for the modules of copies: names of modules are those of the copies."""

    def __init__(self, real: ModuleType):
        super().__init__(real.__name__)
        self._real = real

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._real, name)
        if name in ("import_module", "find_spec"):
            return lambda module, package=None: attribute(private(module), package)
        return _Importlib(attribute) if isinstance(attribute, ModuleType) and name == "util" else attribute


_builtins = {**vars(builtins), "__import__": _import}


class CopyFinder(MetaPathFinder):
    """Finds ``phlox.adopted.<library>`` and the modules below it in the library's own folder."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(PREFIX):
            return None
        name = fullname[len(PREFIX) :]
        if "." in name:
            spec = PathFinder.find_spec(fullname, path)
            origin = spec.origin if spec is not None else None
            folders = spec.submodule_search_locations if spec is not None else None
        else:
            spec = _installed(name)
            origin, folders = spec.origin, spec.submodule_search_locations
            for folder in folders or ():
                hide_frames(folder)  # so that errors point at the user's line
        if spec is None or origin is None or not origin.endswith(".py"):
            if spec is not None and folders is not None:  # a folder without __init__.py
                spec = ModuleSpec(fullname, None, is_package=True)
                spec.submodule_search_locations = list(folders)
            return spec
        return importlib.util.spec_from_file_location(
            fullname,
            origin,
            loader=_CopyLoader(fullname, origin),
            submodule_search_locations=None if folders is None else list(folders),
        )


class _CopyLoader(SourceFileLoader):
    """Runs a file of a library, from the library's own bytecode, with builtins in which ``__import__`` is `_import`."""

    _names_itself = False

    def get_data(self, path: str) -> bytes:
        data = super().get_data(path)
        own = self.name[len(PREFIX) :]
        self._names_itself = "." in own and own.encode() in data
        return data

    def get_code(self, fullname: str) -> CodeType | None:
        """The library's code. Where it compares ``__module__`` with the name of its own module, that is the copy's."""
        code = super().get_code(fullname)
        return _renamed(code, fullname[len(PREFIX) :], fullname) if code is not None and self._names_itself else code

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = _builtins
        collects = gc.isenabled()
        gc.disable()  # what a module makes stays; looking for garbage in it takes a third of the time
        try:
            super().exec_module(module)
        finally:
            if collects:
                gc.enable()


def _renamed(code: CodeType, old: str, new: str) -> CodeType:
    """The code with `new` in the place of the constant `old`, in inner functions and classes too."""

    def replaced(constant: Any) -> Any:
        if isinstance(constant, CodeType):
            return _renamed(constant, old, new)
        return new if constant == old else constant

    return code.replace(co_consts=tuple(map(replaced, code.co_consts)))


def _installed(name: str) -> ModuleSpec:
    """The library that ``import name`` would import, found without importing it."""
    known = sys.modules.get(name)
    spec = known.__spec__ if known is not None else importlib.util.find_spec(name)
    if spec is None:
        raise AdoptionError(
            f"phlox.adopt: there is no library {name!r} here", instead=f"pip install {name}", library=name, name=name
        )
    return spec
