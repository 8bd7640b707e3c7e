"""Keeps jaxlib from importing the real jax behind our back.

Some C++ functions of jaxlib try ``import jax`` to invent a type for a new array. With jax installed that would
load a second library into the process (one to two seconds); inside `no_jax` such an import fails at once, which
jaxlib takes as "no jax here". An import of jax by the user, in this thread later or in any other, is untouched.
"""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Any


class _NoJax(threading.local):
    """A context manager and import finder in one; `active` is per thread."""

    active = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if self.active and name == "jax":
            raise ImportError("jaxlib may not import jax on behalf of phlox")
        return None

    def __enter__(self) -> None:
        if "jax" not in sys.modules and self not in sys.meta_path:
            sys.meta_path.insert(0, self)
        self.active = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.active = False


no_jax = _NoJax()
