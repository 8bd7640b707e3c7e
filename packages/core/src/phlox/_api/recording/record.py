"""`record`: runs a function as it is compiled, and keeps its program, its values and its result."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from ..._base import config
from ..._base.errors import ArgumentError, OptionError, RefusedError, UnsupportedError
from ..._base.pytree import flatten, keystr, tree_leaves_with_path
from ..._ir.jaxpr import ClosedJaxpr, hoisted
from ..._ir.primitive import primitive, tracing
from ..._trace.refs import Ref, accesses
from ..._trace.steps import Section, Step, Value, bodies
from ..._xla.array import ArrayImpl
from ..._xla.host_values import as_array
from ..jit import arguments
from ..jit.jit import jit
from . import compare as comparing, names
from .answers import Answer, Table, first_line, range_text, type_text
from .watch import Occurrence, occurrences
from .why_large import why_large
from .why_nan import why_nan
from .why_zero import why_zero


class Call(NamedTuple):
    """A function and the arguments of a call."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Recording:
    """What happened in one call of a function. `record` makes it.

    Attributes:
      result: what the compiled call returned.
      jaxpr: the program, with constants first.
      index: number of the current step: the one that `forward` has run last; -1 before the first.

    >>> def f(x):
    ...     y = x - 2.0
    ...     return jnp.log(y)
    >>> recording = phlox.record(f)(jnp.ones(2))
    >>> recording.forward().values()
    {'x': Array([1., 1.], dtype=float32), 'y': Array([-1., -1.], dtype=float32)}
    """

    def __init__(self, jaxpr: ClosedJaxpr, inputs: list[Value], result: Any, name: str, call: Call | None = None):
        self.jaxpr = jaxpr
        self.result = result
        self.index = -1
        self.name = name
        self._inputs = inputs
        self._call = call
        self._names: dict[int, tuple[Section, dict[int, str]]] = {}

    # -- the program and its values

    @functools.cached_property
    def section(self) -> Section:
        """The evaluated program. The first question evaluates it."""
        # The evaluation must not raise where the recorded function gave a nan.
        with config.scope(debug_nans=False, debug_infs=False):
            return Section(self.jaxpr.jaxpr, self._inputs)

    @property
    def steps(self) -> list[Step]:
        """The evaluated equations, in order."""
        return self.section.steps

    @functools.cached_property
    def paths(self) -> list[str]:
        """The path of each leaf of the result, such as ``['w']``; "" if the result is one array."""
        return [keystr(path) for path, _ in tree_leaves_with_path(self.result)]

    def names_in(self, section: Section) -> dict[int, str]:
        """The user's names of the values that a section computes, by their id."""
        # By id, as sections hold arrays, which cannot be hashed.
        if id(section) not in self._names:
            # The section is kept, so that its id stays its own.
            self._names[id(section)] = section, names.variable_names(section.steps, section.outputs)
        return self._names[id(section)][1]

    def name_of(self, value: Value) -> str | None:
        """The user's name of a value: of an argument, or of the variable that it was assigned to."""
        return value.label if value.step is None else self.names_in(value.step.section).get(id(value))

    def outputs(self, path: str | int | None) -> list[tuple[str, Value]]:
        """(path, value) of the leaves of the result that `path` selects: all, by number, or by a part of the path."""
        leaves = list(zip(self.paths, self.section.outputs, strict=True))
        if path is None:
            return leaves
        if isinstance(path, int) and -len(leaves) <= path < len(leaves):
            return [leaves[path]]
        chosen = [] if isinstance(path, int) else [leaf for leaf in leaves if path in leaf[0]]
        if not chosen:
            what = f"has the number {path}" if isinstance(path, int) else f"has a path with {path!r}"
            raise OptionError(
                f"no leaf of the result {what}; the paths are {', '.join(self.paths) or 'none'}",
                instead="one of these paths, the number of a leaf, or None for all",
            )
        return chosen

    # -- stepping

    def forward(self, count: int = 1) -> Recording:
        """Goes `count` steps on, at most to the last one. Returns the recording itself."""
        self.index = min(self.index + count, len(self.steps) - 1)
        return self

    def backward(self, count: int = 1) -> Recording:
        """Goes `count` steps back, at most to the start. Returns the recording itself."""
        self.index = max(self.index - count, -1)
        return self

    @property
    def step(self) -> Step | None:
        """The current step; None before the first."""
        return None if self.index < 0 else self.steps[self.index]

    def values(self) -> dict[str, Any]:
        """The arrays that are known at the current step, by name: arguments and the user's variables so far.

        A variable that was assigned several times has its latest value.
        """
        return self.values_in(self.section, self.index)

    def values_in(self, section: Section, index: int) -> dict[str, Any]:
        """As `values`, at the step of this number of a section."""
        known = {x.label: x.array for x in section.inputs if x.label is not None}
        names = self.names_in(section)
        for step in section.steps[: index + 1]:
            known.update((names[id(x)], x.array) for x in step.results if id(x) in names)
        return known

    def open(self, turn: int, index: int | None = None) -> Section:
        """The evaluated steps of one turn of a loop.

        Args:
          turn: number of the turn, from 0.
          index: number of the loop's step; None for the current step.

        Returns:
          A `Section`, whose attribute `steps` has the evaluated equations.

        Raises:
          OptionError: the step is no loop, or has fewer turns.
        """
        step = self.step if index is None else self.steps[index]
        if step is None or not step.is_loop:
            raise OptionError("this step is no loop", instead="the number of a step that is a scan or while_loop")
        section = turn_section(step, turn)
        if section is None:
            raise OptionError(f"the loop has no turn {turn}", instead="a number below that of its turns")
        return section

    # -- questions

    def why_nan(self, path: str | int | None = None) -> Answer:
        """The first operation that gives a nan, or the infinity that a nan comes from, behind a result with a nan.

        Args:
          path: which leaf of the result: a part of its path, or its number. None: the first one with a nan.

        Returns:
          An `Answer`, whose line is in the user's program, also if the operation belongs to a derivative.

        >>> print(phlox.record(lambda x: jnp.log(x - 2.0))(1.0).why_nan())
        nan comes from ...: ...
        """
        return why_nan(self, path)

    def why_zero(self, path: str | int | None = None) -> Answer:
        """The operation that makes a result, such as a gradient, zero.

        For a gradient it is the first factor that is zero, or the operation that no derivative passes: `stop_gradient`,
        a comparison, a conversion to integers.

        Args:
          path: which leaf of the result: a part of its path, or its number. None: the first one with zeros.

        Returns:
          An `Answer`.

        >>> f = lambda x: phlox.nn.relu(x - 2.0)
        >>> print(phlox.record(phlox.grad(f))(1.0).why_zero())
        zero comes from ...: ...
        """
        return why_zero(self, path)

    def why_large(self, path: str | int | None = None) -> Answer:
        """The line on which values grow most, on the way to a result.

        Args:
          path: which leaf of the result: a part of its path, or its number. None: the largest one.

        Returns:
          An `Answer`, with the factors of the lines that contribute most.

        >>> print(phlox.record(lambda x: jnp.sum(jnp.exp(x)))(jnp.full(3, 50.0)).why_large())
        values grow by ...
        """
        return why_large(self, path)

    def watch(self, name: str) -> list[Occurrence]:
        """The values, tangents and cotangents of a tag, or the values of a variable.

        Args:
          name: the name of a `tag` or of a variable of the user.

        Returns:
          A list of `Occurrence`, in the order of evaluation; of loops, one for each turn.

        >>> f = lambda x: jnp.sum(phlox.tag(x * 2.0, "h") ** 2)
        >>> for one in phlox.record(phlox.grad(f))(jnp.ones(2)).watch("h"):
        ...     print(one.kind, one.value)
        value [2. 2.]
        cotangent [4. 4.]
        """
        return occurrences(self, name)

    def compare(
        self, *args: Any, function: Callable[..., Any] | None = None, ulps: float = 64, **kwargs: Any
    ) -> Answer:
        """The first line where this call parts from another one.

        Without arguments each operation is compared with NumPy in float64, and the compiled result with that of the
        operations one by one: a difference is a mistake of the compiler, or of a lowering rule.

        Args:
          *args: other arguments of the function: the first line whose values differ.
          function: another function of the same arguments: the first line where its program or values differ.
          ulps: differences up to so many units in the last place of the largest element do not count.
          **kwargs: further arguments.

        Returns:
          An `Answer`.

        >>> recording = phlox.record(lambda x: jnp.sin(x) * 2.0)(1.0)
        >>> print(recording.compare())
        no difference: ...
        """
        if function is None and not args and not kwargs:
            return comparing.with_numpy(self, ulps)
        if self._call is None:
            raise OptionError("this recording knows no function to call again", instead="phlox.record(f)(*args)")
        other = function or self._call.function
        if not args and not kwargs:
            args, kwargs = self._call.args, self._call.kwargs
        return comparing.with_recording(self, record(other)(*args, **kwargs), ulps, function is not None)

    # -- display

    def table(self, around: int = 12) -> Table:
        """The steps near the current one: number, line, variable, operation, type and range."""
        first = max(0, min(self.index - around, len(self.steps) - 2 * around))
        rows = []
        for step in self.steps[first : first + 2 * around + 1]:
            mark = ">" if step.index == self.index else ""
            for value in step.results[:3]:
                name = self.name_of(value) or ""
                place = f"{mark}{step.index}", first_line(step.where)
                rows.append((*place, name, step.name, type_text(value), range_text(value)))
        title = f"recording of {self.name}: {len(self.steps)} steps"
        return Table(title, ("step", "line", "variable", "operation", "type", "values"), rows)

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def record(fun: Callable[..., Any]) -> Callable[..., Recording]:
    """A function that runs `fun` as `jit` compiles it, and returns a `Recording` that can be stepped and questioned.

    The recording holds the arguments and, after the first question, all values of the program. Programs that are not
    recorded cost nothing. Random numbers are the same; callbacks with results are called a second time.

    Args:
      fun: function of arrays and trees of arrays: also a jitted one, or a transformed one as ``phlox.grad(loss)``.

    Returns:
      A function of the same arguments, which returns a `Recording`. Arguments are not donated.

    Raises:
      ArgumentError: `fun` cannot be called.
      RefusedError: in a call inside of a transformed function.
      UnsupportedError: in a call, if `fun` uses references from outside.

    >>> def loss(w, x):
    ...     h = jnp.tanh(x @ w)
    ...     return jnp.mean(jnp.log(h))
    >>> recording = phlox.record(phlox.grad(loss))(jnp.ones((2, 2)), -jnp.ones((3, 2)))
    >>> recording.why_nan().line
    '...'
    """
    if not callable(fun):
        raise ArgumentError(
            f"record takes a function, got {fun!r}", instead="record(f)(*args)", argument="fun", value=fun
        )
    # A jitted function is traced as it is, with its static arguments.
    jitted: Any = fun if hasattr(fun, "trace") and hasattr(fun, "lower") else jit(fun)

    @functools.wraps(fun)
    def recorded(*args: Any, **kwargs: Any) -> Recording:
        if tracing() is not None:
            raise RefusedError("record was called inside of a transformed function", instead="record(grad(f))(x)")
        traced = jitted.trace(*args, **kwargs)
        leaves = _leaves(traced, jitted, args, kwargs)
        # Donated arguments would be gone when the program is evaluated again.
        result = _without_donation(traced, leaves) if traced.donate_argnums else jitted(*args, **kwargs)
        consts = [Value(x, label=_closed_over(fun, x)) for x in traced.jaxpr.consts]
        inputs = [Value(x, label=name) for x, name in zip(leaves, traced._call.names(), strict=True)]
        call = Call(fun, args, kwargs)
        return Recording(traced.jaxpr, [*consts, *inputs], result, arguments.fun_name(fun), call)

    return recorded


def turn_section(step: Step, turn: int) -> Section | None:
    """The evaluated steps of one turn of a loop; None if there are fewer turns."""
    return next((one.section() for number, one in enumerate(bodies(step)) if number == turn), None)


def _leaves(traced: Any, jitted: Any, args: Any, kwargs: Any) -> list[Any]:
    """The arrays among the arguments, without static ones."""
    leaves = jitted._jit._bind(args, kwargs).leaves if hasattr(jitted, "_jit") else flatten((args, kwargs))[0]
    if accesses(traced.jaxpr.jaxpr).values or any(type(x) is Ref for x in leaves):
        raise UnsupportedError(
            "record of a function that uses references from outside",
            instead="pass the array in, phlox.freeze(ref), and return the new one",
        )
    return [x if type(x) is ArrayImpl else as_array(x) for x in leaves]


def _without_donation(traced: Any, leaves: list[Any]) -> Any:
    """The result of a function that donates arguments, which the recording still needs."""
    closed = traced.jaxpr
    outs = primitive("jit").bind(*closed.consts, *leaves, jaxpr=hoisted(closed), name=traced.fun_name, inline=False)
    return traced.out_tree.unflatten(outs)


def _closed_over(fun: Callable[..., Any], x: Any) -> str:
    """The name by which a function refers to an array that is none of its arguments."""
    # The names are in the user's function, not in a wrapper.
    fun = getattr(fun, "__wrapped__", fun)
    code = getattr(fun, "__code__", None)
    if code is not None:
        cells = dict(zip(code.co_freevars, fun.__closure__ or (), strict=False))
        for name, cell in cells.items():
            if cell.cell_contents is x:
                return str(name)
        for name in code.co_names:
            if fun.__globals__.get(name) is x:
                return str(name)
    return "a closed-over array"
