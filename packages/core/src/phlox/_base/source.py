"""Source locations in the user's program, and name scopes.

Frames of phlox, and of packages that register with `hide_frames`, are skipped: an error should point at a line that the
user can change. A location is recorded for every traced equation, so recording must be cheap: a `Location` keeps the
code object and the instruction offset, and computes the line when it is read.
"""

from __future__ import annotations

import contextlib
import importlib
import linecache
import os
import sys
import threading
import warnings
from collections.abc import Callable
from contextvars import ContextVar, Token
from types import CodeType, FrameType, TracebackType
from typing import Any, TypeVar

import numpy as np

#: prefix of the file names of generated code
WRITTEN = "<phlox "
# A line of threading, contextlib or importlib, where a thread starts or a context manager exits, helps no user either.
_hidden: list[str] = [os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep]
_hidden += [threading.__file__, contextlib.__file__, importlib.__file__]
# NumPy's functions call methods of traced arrays and of symbolic lengths, which may refuse.
_hidden.append(os.path.dirname(np.__file__) + os.sep)
_is_hidden: dict[str, bool] = {}
# Equations that are evaluated again have no frame of the user's, but the recorded location.
#: while recorded equations are evaluated again: the location of the current equation
_replayed: ContextVar[Location | None] = ContextVar("phlox_here", default=None)
_replaying: set[int] = set()  # ids, because hashing a code object hashes all of its contents
_F = TypeVar("_F", bound=Callable[..., Any])
#: id of a code object -> the positions of its instructions: a cache for callers that read many locations
Positions = dict[int, list[tuple[int | None, int | None, int | None, int | None]]]


def replays(function: _F) -> _F:
    """Decorator for functions that evaluate recorded equations again, with a `Replay`.

    Inside of them, `user_location` returns the location of the recorded equation, not that of the call.
    """
    _replaying.add(id(function.__code__))
    return function


def hide_frames(folder: str) -> None:
    """Treats files below `folder` as internal: locations and errors point to the code that calls them.

    A library calls it once, when it is imported: ``hide_frames(os.path.dirname(__file__))``.

    Args:
      folder: path of a folder, or of one file.

    >>> import os
    >>> hide_frames(os.path.join(os.sep, "a", "library"))
    >>> is_internal(os.path.join(os.sep, "a", "library", "layers.py"))
    True
    """
    _hidden.append(_start_of(folder))
    _is_hidden.clear()


class HiddenPaths(list[str]):
    """A list of folders and files: adding one is `hide_frames`, and removing it takes that back."""

    def append(self, path: str) -> None:
        super().append(path)
        hide_frames(path)

    def remove(self, path: str) -> None:
        super().remove(path)
        _hidden.remove(_start_of(path))
        _is_hidden.clear()


def _start_of(folder: str) -> str:
    path = os.path.abspath(folder)
    return path if os.path.isfile(path) else path + os.sep


def is_internal(filename: str) -> bool:
    """True when `filename` belongs to phlox or to a package that hides its frames."""
    known = _is_hidden.get(filename)
    if known is None:
        # File names repeat for each traced operation, so each is looked at once.
        known = filename.startswith((*_hidden, "<frozen", WRITTEN))
        _is_hidden[filename] = known
    return known


#: the folder of Python's own modules
_STDLIB = os.path.dirname(os.__file__) + os.sep
#: folders of installed packages, wherever they are
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def is_users(filename: str) -> bool:
    """True when `filename` belongs to the user's program: not to phlox, Python, or an installed package."""
    if is_internal(filename) or filename.startswith(_STDLIB):
        return False
    return not any(folder in filename for folder in _INSTALLED)


def is_inside(trace: TracebackType | None) -> bool:
    """Whether all frames of a traceback are internal: phlox raised the exception, and caught it."""
    while trace is not None and is_internal(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return trace is None


class Wrapper(str):
    """An element of a name scope that is a transformation: it is printed around the name that follows."""

    __slots__ = ()


class InnerScope(str):
    """An element of a name scope that the operations of functions have too which are traced inside of it."""

    __slots__ = ()


#: the current name scope: names and transformations (`Wrapper`), outermost first; see `phlox.named_scope`
scope: ContextVar[tuple[str, ...]] = ContextVar("phlox_scope", default=())


class within(contextlib.ContextDecorator):
    """A context that adds `names` to the current name scope, and a decorator. Decorated functions can be pickled."""

    def __init__(self, *names: str):
        self._names = names
        #: a stack, as the same context may be entered again inside of its own block
        self._tokens: list[Token[tuple[str, ...]]] = []

    def _recreate_cm(self) -> within:
        # Each call of a decorated function has a context of its own: calls in several threads do not share a stack.
        return within(*self._names)

    def __enter__(self) -> None:
        self._tokens.append(scope.set(scope.get() + self._names))

    def __exit__(self, *_: object) -> None:
        scope.reset(self._tokens.pop())


def inner_scope() -> tuple[str, ...]:
    """The name scope in which the trace of a function begins.

    A Jaxpr may be called from many places, so its equations record only the name scopes inside of the function. The
    equation that calls the Jaxpr records the scopes around the call.
    """
    names = scope.get()
    return tuple([name for name in names if type(name) is InnerScope]) if names else ()


class Replay:
    """A context for evaluating recorded equations again: `enter` is called before each of them.

    Operations then get the location of the recorded equation, and its name scope below the scope around the context.
    """

    __slots__ = ("names", "outer", "token")

    def __init__(self) -> None:
        self.outer = scope.get()
        self.names: tuple[str, ...] = ()

    def enter(self, where: Location | None) -> None:
        """Sets the location and name scope of the next equation. None: no own scope, and the location is unchanged."""
        names: tuple[str, ...] = ()
        if where is not None:
            _replayed.set(where)
            names = where.scope
        if names is not self.names and names != self.names:  # most equations have the scope of the previous one
            scope.set(self.outer + names)
            self.names = names

    def __enter__(self) -> Replay:
        # Set to its own value: the token remembers what to restore.
        self.token = _replayed.set(_replayed.get())
        return self

    def __exit__(self, *_: object) -> None:
        _replayed.reset(self.token)
        if self.names:
            scope.set(self.outer)


def scope_text(names: tuple[str, ...]) -> str:
    """A name scope as text: ``vmap(jvp(layer))/attention``."""
    parts: list[str] = []
    waiting: list[str] = []
    for name in names:
        # Transformations apply to the name that follows them: ``vmap(layer)``.
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


def is_replaying() -> bool:
    """Whether recorded equations are evaluated again."""
    return _replayed.get() is not None


class Location:
    """A place in the user's program: file, line and function, which are computed lazily; and its name scope.

    In an installed package, `caller` may be the user's line from which the package was called; see `with_caller`.
    """

    __slots__ = ("caller", "code", "offset", "scope")

    def __init__(self, code: CodeType, offset: int, scope: tuple[str, ...] = (), caller: Location | None = None):
        self.code = code
        self.offset = offset
        self.scope = scope
        self.caller = caller

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
        """The column on the line, from 1."""
        return (self._position()[2] or 0) + 1

    def place(self, positions: Positions) -> tuple[int, int]:
        """Line and column. `positions` is a cache by code object; locations must stay alive as long as it is used."""
        # Reading positions decodes a table of the code object from its start; the list is made once for many locations.
        code_positions = positions.get(id(self.code))
        if code_positions is None:
            code_positions = positions[id(self.code)] = list(self.code.co_positions())
        # An instruction takes two bytes.
        index = self.offset // 2
        line, _, column, _ = code_positions[index] if 0 <= index < len(code_positions) else (None, None, None, None)
        return line or self.code.co_firstlineno, (column or 0) + 1

    @property
    def span(self) -> tuple[int, int, int, int] | None:
        """First and last line, first and last column (from 0) of the expression; None if they are not known."""
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
        """The source line; empty if the file cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        number = _cell(self.file)
        if number is not None:
            inside = "" if self.function == "<module>" else f" ({self.function})"
            return f"In [{number}], line {self.line}{inside}"
        return f"{self.file}:{self.line} ({self.function})"

    def __repr__(self) -> str:
        return f"Location({self})"

    def __reduce__(self) -> Any:  # errors are pickled with their location; code objects cannot be pickled
        return _restored, (self.file, self.function, self.line, self.column, self.scope)


def _cell(file: str) -> int | None:
    """The number of the notebook's cell whose code has this file name; None for files."""
    # IPython is not imported by phlox: if it runs, it is in `sys.modules`.
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if hasattr(ipython, "get_ipython") else None
    return getattr(getattr(shell, "compile", None), "_filename_map", {}).get(file)


def _restored(file: str, function: str, line: int, column: int, names: tuple[str, ...]) -> Location:
    """An unpickled location, in a new code object that has an instruction at this place."""
    import ast

    start = column - 1
    # A constant compiles to one instruction at this place, after which the code returns it.
    nothing = ast.Constant(None, lineno=line, col_offset=start, end_lineno=line, end_col_offset=start)
    code = compile(ast.Expression(nothing), file, "eval").replace(co_name=function)
    return Location(code, len(code.co_code) - 2, names)


def user_location(depth: int = 1) -> Location | None:
    """The location of the innermost frame that belongs neither to phlox nor to a package that hides its frames.

    Args:
      depth: number of innermost frames to skip; 1 skips the frame of this function.

    Returns:
      A `Location`, or None when there is no such frame.

    >>> user_location().line
    1
    """
    frame: FrameType | None = sys._getframe(depth)
    # Read into locals: this loop runs for each traced operation and passes ten to thirty frames.
    hidden = _is_hidden
    replayed = _replayed.get()
    while frame is not None:
        code = frame.f_code
        filename = code.co_filename
        known = hidden.get(filename)
        if known is None:
            known = is_internal(filename)
        # A frame of the user's inside of the evaluation is nearer than the recorded location.
        if not known:
            return Location(code, frame.f_lasti, scope.get())
        # The frame evaluates recorded equations: what lies outside of it is the call, not the origin.
        if replayed is not None and id(code) in _replaying:
            return Location(replayed.code, replayed.offset, scope.get(), replayed.caller)
        frame = frame.f_back
    return None


def with_caller(location: Location) -> Location:
    """The location of the current operation with its `caller`, if it is in an installed package."""
    if location.caller is None and not is_users(location.file):
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and not is_users(frame.f_code.co_filename):
            frame = frame.f_back
        location.caller = frame and Location(frame.f_code, frame.f_lasti)
    return location


def location_in(trace: TracebackType | None) -> Location | None:
    """The location of the innermost frame of a traceback that `user_location` would return; None if there is none."""
    location = None
    while trace is not None:
        if not is_internal(trace.tb_frame.f_code.co_filename):
            location = Location(trace.tb_frame.f_code, trace.tb_lasti)
        trace = trace.tb_next
    return location


def warn(message: str, category: type[Warning]) -> None:
    """As `warnings.warn`, with the user's line as the location of the warning (see `user_location`).

    Args:
      message: the text.
      category: class of the warning.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warn("this is slow", UserWarning)
    >>> str(caught[0].message)
    'this is slow'
    """
    frame = sys._getframe(1)
    while is_internal(frame.f_code.co_filename) and frame.f_back is not None:
        frame = frame.f_back
    # Python keeps which warnings it has shown in the module that they point to.
    names = frame.f_globals
    registry = names.setdefault("__warningregistry__", {})
    module = names.get("__name__") or frame.f_code.co_filename  # Python drops warnings whose module is None
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, module, registry)
