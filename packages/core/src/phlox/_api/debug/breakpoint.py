"""`debug.breakpoint`: stops a compiled program and shows the user's variables.

At tracing the local variables on the user's stack are recorded. Arrays among them become arguments of a callback, which
opens a prompt when the program reaches it.
"""

from __future__ import annotations

import contextlib
import linecache
import pprint
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NamedTuple

from ..._base.errors import OptionError
from ..._base.pytree import flatten, tree_map
from ..._base.source import is_internal
from ..._ops.elementwise.arithmetic import stop_gradient
from ..._ops.host import callbacks as ops
from ..._trace.trace import typeof
from ..jit.programs import ShapeDtypeStruct
from .callbacks import pure_callback, split_leaves
from .prompt import Prompt

# Callbacks run on XLA's threads, and two prompts on one terminal would mix.
_one_at_a_time = threading.Lock()


class Frame(NamedTuple):
    """One frame of the user's stack: source position and variables."""

    file: str
    line: int
    function: str
    variables: dict[str, Any]
    globals: dict[str, Any]


class Debugger(Prompt):
    """The prompt, whose expressions have the variables of the frame."""

    def __init__(self, frames: list[Frame], stdin: Any = None, stdout: Any = None):
        super().__init__(stdin, stdout)
        self.frames = frames
        self.at = 0

    def where(self, i: int) -> str:
        frame = self.frames[i]
        mark = ">" if i == self.at else " "
        source = linecache.getline(frame.file, frame.line).strip()
        return f"{mark} {frame.file}({frame.line}) {frame.function}\n-> {source}"

    def _print(self, expression: str, text_of: Callable[[Any], str]) -> None:
        frame = self.frames[self.at]
        try:
            self.write(text_of(eval(expression, frame.globals, frame.variables)))
        except Exception as error:
            self.write(f"{type(error).__name__}: {error}")

    def preloop(self) -> None:
        self.write(self.where(self.at))

    def do_p(self, expression: str) -> None:
        """p EXPRESSION: prints its value."""
        self._print(expression, repr)

    def do_pp(self, expression: str) -> None:
        """pp EXPRESSION: prints its value on several lines."""
        self._print(expression, pprint.pformat)

    def do_where(self, _: str) -> None:
        """where (w, bt): the functions on the stack."""
        for i in reversed(range(len(self.frames))):
            self.write(self.where(i))

    def do_list(self, _: str) -> None:
        """list (l): the source around the current line."""
        self.write_source(self.frames[self.at].file, self.frames[self.at].line)

    def do_locals(self, _: str) -> None:
        """locals: the variables of this function."""
        for name, value in self.frames[self.at].variables.items():
            self.write(f"{name} = {value!r}")

    def _move(self, step: int, end: str) -> None:
        if 0 <= self.at + step < len(self.frames):
            self.at += step
            self.write(self.where(self.at))
        else:
            self.write(f"this is the {end} function")

    def do_up(self, _: str) -> None:
        """up (u): to the function that called this one."""
        self._move(1, "outermost")

    def do_down(self, _: str) -> None:
        """down (d): back to the function that was called."""
        self._move(-1, "innermost")

    def do_continue(self, _: str) -> bool:
        """continue (c): lets the program go on."""
        return True

    def do_quit(self, _: str) -> bool:
        """quit (q): ends the program with an error."""
        raise RuntimeError("the user quit at a breakpoint")

    do_w = do_bt = do_where
    do_l, do_u, do_d, do_c, do_q = do_list, do_up, do_down, do_continue, do_quit


def _frames(filter_frames: bool, num_frames: int | None) -> list[Frame]:
    frames: list[Frame] = []
    # Frame 0 is this function, 1 `breakpoint`, 2 the user's.
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and (num_frames is None or len(frames) < num_frames):
        code = frame.f_code
        if not (filter_frames and is_internal(code.co_filename)):
            # At the top level of a module the local variables are the global ones, which are hundreds.
            variables = {} if frame.f_locals is frame.f_globals else dict(frame.f_locals)
            frames.append(Frame(code.co_filename, frame.f_lineno, code.co_name, variables, frame.f_globals))
        frame = frame.f_back
    return frames


def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    **kwargs: Any,
) -> Any:
    """Stops the program at this point and opens a prompt in the terminal, with the user's variables.

    At the prompt, expressions are evaluated and printed; ``up`` and ``down`` change the stack frame, ``list`` shows the
    source, ``continue`` resumes, ``quit`` ends the program, ``help`` lists all commands.

    Args:
      backend: ``None`` or ``'cli'``, the prompt in the terminal.
      filter_frames: leave out functions of phlox itself.
      num_frames: how many frames of the stack to keep; None for all.
      ordered: stop in program order relative to other ordered breakpoints and prints.
      token: a tree of arrays that is returned unchanged; the program stops where these are computed, and only if the
        returned arrays are used.
      **kwargs: `stdin` and `stdout`, files to use instead of the terminal.

    Returns:
      `token`, or None without it.

    Raises:
      OptionError: `backend` is another value, or both `token` and `ordered` are given.

    >>> import io
    >>> answers = io.StringIO()
    >>> def f(x):
    ...     y = 2 * x
    ...     phlox.debug.breakpoint(stdin=io.StringIO("y\\ncontinue\\n"), stdout=answers)
    ...     return y
    >>> phlox.jit(f)(3)
    Array(6, dtype=int32, weak_type=True)
    >>> "Array(6, dtype=int32" in answers.getvalue()
    True
    """
    if backend not in (None, "cli"):
        raise OptionError(f"debug.breakpoint: no debugger {backend!r}", instead="None or 'cli'")
    if token is not None and ordered:
        raise OptionError("debug.breakpoint: ordered and token exclude one another", instead="one of them")
    frames = _frames(filter_frames, num_frames)
    leaves, in_tree = flatten(([list(map(_variable, frame.variables.values())) for frame in frames], {}), _is_iterator)
    arrays, fixed = split_leaves(leaves)

    # The frames are those of tracing, with the values of this run for what was traced.
    def stop(*scopes: Any) -> None:
        seen = []
        for frame, values in zip(frames, scopes, strict=True):
            shown = [x.value if type(x) is _AsIs else x for x in values]
            seen.append(frame._replace(variables=dict(zip(frame.variables, shown, strict=True))))
        with _one_at_a_time:
            Debugger(seen, **kwargs).cmdloop()

    called = ops.Callback(stop, in_tree, fixed)
    if token is None:
        ops.debug_callback.bind(*arrays, callback=called, ordered=ordered, partitioned=False)
        return None

    def stop_and_return(token: Any, *values: Any) -> Any:
        called(*values)
        return token

    types = tree_map(lambda x: ShapeDtypeStruct(typeof(x).shape, typeof(x).dtype), token)
    # Derivatives pass by the prompt.
    token, arrays = tree_map(stop_gradient, (token, arrays))
    return pure_callback(stop_and_return, types, token, *arrays)


#: A variable with more levels of containers is shown as it is.
MAX_DEPTH = 100


def _nests_deeply(value: Any, above: frozenset[int], done: set[int]) -> bool:
    """Whether containers hold themselves, or hold each other over more than `MAX_DEPTH` levels.

    jaxlib's flatten, which recurses in C++, would end in an error for these, after which Python 3.12 raises
    RecursionError everywhere: frames of programs and test runners do have such variables.
    """
    # `done` has containers that were searched, as a graph of shared ones has exponentially many paths.
    if not isinstance(value, dict | list | tuple) or id(value) in done:
        return False
    if id(value) in above or len(above) == MAX_DEPTH:
        return True
    inside = above | {id(value)}
    if any(_nests_deeply(x, inside, done) for x in (value.values() if isinstance(value, dict) else value)):
        return True
    done.add(id(value))
    return False


class _AsIs:
    """A variable that is shown as it was while the function was traced: one leaf, which is no array."""

    def __init__(self, value: Any):
        self.value = value


def _variable(value: Any) -> Any:
    """A variable as a tree, if it has arrays, of which each run has its own values."""
    if not _nests_deeply(value, frozenset(), set()):
        # Dict keys may be of a kind that cannot be sorted, and the code of a user's class may raise.
        with contextlib.suppress(Exception):
            if split_leaves(flatten(value, _is_iterator)[0])[0]:
                return value
    return _AsIs(value)


def _is_iterator(x: Any) -> bool:
    # A leaf: jaxlib 0.12 warns of iterators among the leaves, and here they are not the user's mistake.
    return isinstance(x, Iterator)
