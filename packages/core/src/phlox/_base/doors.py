"""Modules of phlox that the distribution phlox-compat has: ``phlox.interpreters`` is ``phlox_compat.interpreters``.

Only programs and libraries that are written for JAX need them. Core has a file for each, a door, which calls `enter`.
"""

from __future__ import annotations

import importlib
import sys

from .name_errors import MissingImportError, MissingNameError


def enter(door: str) -> None:
    """Puts the module of phlox-compat into the place of the module of phlox that is being imported.

    Args:
      door: the name of the module of phlox, such as ``phlox.interpreters``.

    Raises:
      MissingImportError: phlox-compat is not installed.
    """
    home = door.replace("phlox", "phlox_compat", 1)
    try:
        module = importlib.import_module(home)
    except ModuleNotFoundError as error:
        # Another module is missing, inside of phlox-compat: that error must show.
        if error.name != "phlox_compat":
            raise
        raise not_installed(MissingImportError, door) from None
    # `import` returns what is in `sys.modules`, not what was executed.
    sys.modules[door] = module
    # Under the names of phlox too: otherwise `import phlox.interpreters.ad` loads the file a second time.
    for name in [name for name in sys.modules if name.startswith(f"{home}.")]:
        sys.modules[door + name.removeprefix(home)] = sys.modules[name]


def not_installed(
    kind: type[MissingImportError] | type[MissingNameError], name: str
) -> MissingImportError | MissingNameError:
    """The error for a name of phlox that only phlox-compat has."""
    return kind(
        f"{name} is a part of phlox-compat, which is not installed: it runs programs and libraries written for JAX",
        instead="pip install phlox-compat",
        name="phlox_compat",
        jax_name=name.replace("phlox", "jax", 1),
        library="",
    )
