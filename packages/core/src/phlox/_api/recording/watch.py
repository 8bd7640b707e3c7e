"""`tag` and `Recording.watch`: values and cotangents of what the user has named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..._base.errors import ArgumentError
from ..._base.pytree import tree_map
from ..._ir.jaxpr import Jaxpr, jaxprs_in
from ..._ops.control.remat import name_p
from ..._ops.structure.tag import tag_p
from ..._trace.steps import Section, Value, bodies
from .answers import first_line, range_text, type_text
from .names import statement_at, variable_names

if TYPE_CHECKING:
    from .record import Recording


def tag(x: Any, name: str) -> Any:
    """Names `x`, so that `Recording.watch` finds its values, tangents and cotangents. It computes nothing.

    Args:
      x: an array, or a tree of arrays.
      name: the name; several values may share a name.

    Returns:
      `x`.

    Raises:
      ArgumentError: `name` is no string.

    >>> def loss(w):
    ...     h = phlox.tag(w * 3.0, "h")
    ...     return h**2
    >>> [float(one.value) for one in phlox.record(phlox.grad(loss))(1.0).watch("h")]
    [3.0, 6.0]
    """
    if not isinstance(name, str):
        raise ArgumentError(f"tag takes a name, got {name!r}", instead="a string", argument="name", value=name)
    return tree_map(lambda leaf: tag_p.bind(leaf, name=name, kind="value"), x)


class Occurrence(NamedTuple):
    """One value of a name.

    Attributes:
      kind: "value", "tangent" or "cotangent".
      value: the array.
      line: file and line in the user's program.
      path: the turns of loops in which it was computed, outermost first.
    """

    kind: str
    value: Any
    line: str
    path: tuple[str, ...]

    def __repr__(self) -> str:
        value = Value(self.value)
        inside = "".join(f", {turn}" for turn in self.path)
        return f"{self.kind}{inside}: {type_text(value)} {range_text(value)}  ({self.line})"


def occurrences(recording: Recording, name: str) -> list[Occurrence]:
    """See `Recording.watch`."""
    tagged = list(_in_section(recording.section, name, True))
    return tagged or list(_in_section(recording.section, name, False))


def _in_section(section: Section, name: str, tags: bool) -> Iterator[Occurrence]:
    """The occurrences of a tag (`tags` is True) or of a variable in a section, and in the turns of its loops."""
    names = {} if tags else variable_names(section.steps, section.outputs)
    for step in section.steps:
        params = step.eqn.params
        if step.is_loop:
            # A loop is opened only if it has the name: each turn is evaluated again.
            if any(_mentions(inner, name, tags) for inner in jaxprs_in(params)):
                for turn in bodies(step):
                    yield from _in_section(turn.section(), name, tags)
        elif tags and step.eqn.primitive in (tag_p, name_p) and params["name"] == name:
            yield Occurrence(params.get("kind", "value"), step.results[0].array, first_line(step.where), step.path)
        else:
            for value in step.results:
                if names.get(id(value)) == name:
                    yield Occurrence("value", value.array, first_line(step.where), step.path)


def _mentions(jaxpr: Jaxpr, name: str, tags: bool) -> bool:
    """Whether a Jaxpr has this tag (`tags` is True), or a statement that binds this variable."""
    for eqn in jaxpr.eqns:
        if tags:
            if eqn.primitive in (tag_p, name_p) and eqn.params["name"] == name:
                return True
        else:
            statement = statement_at(eqn.source_info)
            if statement is not None and name in statement.targets:
                return True
        if any(_mentions(inner, name, tags) for inner in jaxprs_in(eqn.params)):
            return True
    return False
