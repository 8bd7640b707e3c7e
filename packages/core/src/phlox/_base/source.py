"""Where in the user's program something happened.

Frames of phlox itself (and of packages that register with `hide_frames`) are skipped: an error should point
at the line the user can change. Recording must be cheap because it happens once for every traced equation,
so a location keeps the code object and instruction offset and works out the line only when asked.
"""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType, FrameType
from typing import Any, TypeVar

#: how the names of files begin that do not exist: those of code that phlox writes
WRITTEN = "<phlox "
# Where a thread begins, or a context manager ends, is nobody's line: what runs there was asked for elsewhere.
_hidden: list[str] = [os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep]
_hidden += [threading.__file__, contextlib.__file__]
_is_hidden: dict[str, bool] = {}
#: Where the equation was written that is being run again, when one is.
_here: ContextVar[Location | None] = ContextVar("phlox_here", default=None)
_replaying: set[int] = set()  # by address: code objects are hashed by all they contain
_F = TypeVar("_F", bound=Callable[..., Any])
#: the positions of all instructions of code objects, by address: for those who ask for many places at once
Positions = dict[int, list[tuple[int | None, int | None, int | None, int | None]]]


def replays(function: _F) -> _F:
    """Decorator for functions that run recorded equations again, with a `Replay`.

    What they do was asked for there, and not where they are called.
    """
    _replaying.add(id(function.__code__))
    return function


def hide_frames(folder: str) -> None:
    """Treats files below `folder` as internal, so that locations and errors point past them.

    A library calls it once, where it is imported: ``hide_frames(os.path.dirname(__file__))``.

    Args:
      folder: path of a folder.

    Returns:
      None.

    >>> import os
    >>> hide_frames(os.path.join(os.sep, "a", "library"))
    >>> is_internal(os.path.join(os.sep, "a", "library", "layers.py"))
    True
    """
    _hidden.append(os.path.abspath(folder) + os.sep)
    _is_hidden.clear()


def is_internal(filename: str) -> bool:
    """True when `filename` belongs to phlox or to a package that hides its frames."""
    known = _is_hidden.get(filename)
    if known is None:
        known = filename.startswith((*_hidden, "<frozen", WRITTEN))
        _is_hidden[filename] = known
    return known


class Wrapper(str):
    """An element of a scope that is a transformation: it is written around the name that follows."""

    __slots__ = ()


#: The names (and transformations) that the running code stands in, outermost first; see `named_scope` of the doors.
scope: ContextVar[tuple[str, ...]] = ContextVar("phlox_scope", default=())


@contextmanager
def within(*names: str) -> Iterator[None]:
    """What is traced in this block stands in these names, below those that are there already."""
    token = scope.set(scope.get() + names)
    try:
        yield
    finally:
        scope.reset(token)


class Replay:
    """Moves from place to place, for those who run recorded equations again: what an equation does was asked for where
    it was written, and stands in the names that it stood in, below those that are there already.
    """

    __slots__ = ("names", "outer", "token")

    def __init__(self) -> None:
        self.outer = scope.get()
        self.names: tuple[str, ...] = ()

    def enter(self, where: Location | None) -> None:
        """Goes to `where` (None: a place that is known already stays)."""
        names: tuple[str, ...] = ()
        if where is not None:
            _here.set(where)
            names = where.scope
        if names is not self.names and names != self.names:  # most equations stand where the last one did
            scope.set(self.outer + names)
            self.names = names

    def __enter__(self) -> Replay:
        self.token = _here.set(_here.get())
        return self

    def __exit__(self, *_: object) -> None:
        _here.reset(self.token)
        if self.names:
            scope.set(self.outer)


def scope_text(names: tuple[str, ...]) -> str:
    """A scope as it is printed: ``vmap(jvp(layer))/attention``."""
    parts: list[str] = []
    waiting: list[str] = []
    for name in names:
        if type(name) is Wrapper:
            waiting.append(name)
        else:
            parts.append(_wrapped(waiting, name))
            waiting = []
    return "/".join([*parts, _wrapped(waiting, "")] if waiting else parts)


def _wrapped(transformations: list[str], name: str) -> str:
    for transformation in reversed(transformations):
        name = f"{transformation}({name})"
    return name


class Location:
    """One place in the user's program: file, line and function, resolved lazily; and the names it stands in."""

    __slots__ = ("code", "offset", "scope")

    def __init__(self, code: CodeType, offset: int, scope: tuple[str, ...] = ()):
        self.code = code
        self.offset = offset
        self.scope = scope

    @property
    def file(self) -> str:
        return self.code.co_filename

    @property
    def function(self) -> str:
        return self.code.co_name

    @property
    def line(self) -> int:
        return self._position()[0] or self.code.co_firstlineno

    @property
    def column(self) -> int:
        """Where on the line, counted from 1."""
        return (self._position()[2] or 0) + 1

    def place(self, positions: Positions) -> tuple[int, int]:
        """Line and column; `positions` keeps what was found of the code, as long as the caller keeps the location."""
        found = positions.get(id(self.code))
        if found is None:
            found = positions[id(self.code)] = list(self.code.co_positions())
        index = self.offset // 2
        line, _, column, _ = found[index] if 0 <= index < len(found) else (None, None, None, None)
        return line or self.code.co_firstlineno, (column or 0) + 1

    @property
    def span(self) -> tuple[int, int, int, int] | None:
        """First and last line, first and last column (from 0) of the expression; None where that is not known."""
        first, last, start, end = self._position()
        if first is None or last is None or start is None or end is None:
            return None
        return first, last, start, end

    def _position(self) -> tuple[int | None, int | None, int | None, int | None]:
        for index, position in enumerate(self.code.co_positions()):
            if index == self.offset // 2:
                return position
        return (None, None, None, None)

    def text(self) -> str:
        """The source text at this place, as far as the file can still be read."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{self.file}:{self.line} ({self.function})"

    def __repr__(self) -> str:
        return f"Location({self})"

    def __reduce__(self) -> Any:  # errors are pickled with their location, and code objects cannot be
        return _restored, (self.file, self.function, self.line, self.column, self.scope)


def _restored(file: str, function: str, line: int, column: int, names: tuple[str, ...]) -> Location:
    """The location of a pickle: in a code object that has one instruction at this place."""
    import ast

    start = column - 1
    nothing = ast.Constant(None, lineno=line, col_offset=start, end_lineno=line, end_col_offset=start)
    code = compile(ast.Expression(nothing), file, "eval").replace(co_name=function)
    return Location(code, len(code.co_code) - 2, names)


def user_location(depth: int = 1) -> Location | None:
    """The innermost frame on the stack that is neither of phlox nor of a package that hides its frames.

    Args:
      depth: how many frames are left out from the start; the first is that of this function.

    Returns:
      A `Location`, or None when there is no such frame.

    >>> user_location().line
    1
    """
    frame: FrameType | None = sys._getframe(depth)
    hidden = _is_hidden
    replayed = _here.get()
    while frame is not None:
        code = frame.f_code
        filename = code.co_filename
        known = hidden.get(filename)
        if known is None:
            known = is_internal(filename)
        if not known:
            return Location(code, frame.f_lasti, scope.get())
        if replayed is not None and id(code) in _replaying:
            return Location(replayed.code, replayed.offset, scope.get())
        frame = frame.f_back
    return None


def warn(message: str, category: type[Warning]) -> None:
    """Warns as `warnings.warn`, at the user's line (see `user_location`).

    Args:
      message: the text.
      category: class of the warning.

    Returns:
      None.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warn("this is slow", UserWarning)
    >>> str(caught[0].message)
    'this is slow'
    """
    frame = sys._getframe(1)
    while is_internal(frame.f_code.co_filename) and frame.f_back is not None:
        frame = frame.f_back
    names = frame.f_globals
    registry = names.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, names.get("__name__"), registry)
