"""``phlox.as_jax``: phlox in the place of jax, for programs and libraries that say ``import jax``.

    python -m phlox.as_jax program.py [arguments]
    python -m phlox.as_jax -m module [arguments]          # also -m pytest
    python -m phlox.as_jax -c "import jax; print(jax.numpy.arange(3))"
    python -m phlox.as_jax                                # an interactive session

The program is run as it stands. `install` does the same inside of a program, before it imports anything else. The
real jax is not imported and need not be installed. `phlox.adopt` is for programs that use both.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import phlox
from phlox.errors import AdoptionError
from phlox.extend import publish

if TYPE_CHECKING:
    from ._copies import adopt

__all__ = ["adopt", "install"]

#: the largest arrays, in elements, that are lowered exactly as in JAX, see the flag `jaxlike_lowering_size`
_SMALL = 4096


def install() -> None:
    """Makes every later ``import jax`` in this process, and in processes that multiprocessing starts, import phlox.

    Call it before anything imports jax. A second call does nothing.

    Returns:
      None.

    Raises:
      AdoptionError: the real jax is imported already, and modules hold it.

    >>> phlox.as_jax.install()  # doctest: +SKIP
    >>> import jax  # doctest: +SKIP
    """
    from .._core import config
    from . import _class_names, _finder, _views

    loaded = sys.modules.get("jax")
    if isinstance(loaded, _views.View):
        return
    if loaded is not None:
        raise AdoptionError(
            f"the real jax {getattr(loaded, '__version__', '')} is loaded already, so phlox cannot stand for it",
            instead="phlox.as_jax.install() before any import, or python -m phlox.as_jax program.py; "
            "phlox.adopt(library) runs a library on phlox beside the real jax",
            library="jax",
        )
    sys.meta_path.insert(0, _finder.JaxFinder())
    _class_names.take_jax_names()
    phlox.config.update("jaxlike_lowering_size", _SMALL)
    # Programs count compilations by a handler of this logger.
    config.logger_name = "jax"
    _spawned_processes_too()


def _spawned_processes_too() -> None:
    """Processes that are started anew by multiprocessing also run `install` before they import the program."""
    from multiprocessing import spawn

    usual = spawn.get_command_line

    def command_line(**kwargs: Any) -> list[str]:
        command = usual(**kwargs)
        if "-c" in command:
            at = command.index("-c") + 1
            command[at] = f"import phlox.as_jax; phlox.as_jax.install(); {command[at]}"
        return command

    spawn.get_command_line = command_line


def _on_demand(name: str) -> Any:
    """`adopt`, whose module imports `importlib.metadata`: 10 ms that programs under `install` do not need."""
    if name != "adopt":
        return None
    from ._copies import adopt

    return adopt


publish(__name__, other=_on_demand)
