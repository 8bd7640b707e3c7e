"""Context variables that have a value in the body of a ``with`` block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

_T = TypeVar("_T")


@contextmanager
def scoped(variable: ContextVar[_T], value: _T) -> Iterator[None]:
    """A context in which `variable` has this value."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
