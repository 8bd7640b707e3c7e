"""Prevents jaxlib from importing the real jax.

Some C++ functions of jaxlib call ``import jax`` to find the type of a new array. If jax is installed, the import takes
one to two seconds and loads a second library into the process. Inside `no_jax` it raises ImportError, which jaxlib
takes to mean that jax is not installed. Imports by the user, in other threads or afterwards, are not affected.
"""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Any


class _NoJax(threading.local):
    """A context manager that is also an import finder; `active` is thread-local."""

    active = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if self.active and name == "jax":
            raise ImportError("jaxlib may not import jax on behalf of phlox")
        return None

    def __enter__(self) -> None:
        # The finder stays in the list, where `active` switches it: removing it could disturb an import in another
        # thread.
        if "jax" not in sys.modules and self not in sys.meta_path:
            sys.meta_path.insert(0, self)
        self.active = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # An inner use ends an outer one, too. Each call into jaxlib has a use of its own, so none runs unguarded.
        self.active = False


no_jax = _NoJax()
