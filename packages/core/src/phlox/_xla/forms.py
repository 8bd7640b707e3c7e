"""Forms: further lowering rules of primitives for CPUs, where the code that XLA makes of an operation is slow or wrong.

The rule `lower` of a primitive is portable. Programs that run on CPUs only have the first `Form` that applies. The
table of forms is `phlox._ops.cpu`; a form is imported when the first program with such an operation is lowered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .._ir.jaxpr import JaxprEqn
from .._ir.primitive import Primitive
from .platforms import cpu_only
from .text import Function, Value


class Form(NamedTuple):
    """A lowering rule for CPUs.

    Attributes:
      applies: ``applies(f, *operands, **params)``, whether the form can be written for these operands, and is faster.
      write: the lowering rule, as `Primitive.lower`.
      gain: what was measured, or what is wrong without the form.
    """

    applies: Callable[..., bool]
    write: Callable[..., Any]
    gain: str


class _Table:
    """The table of forms: `least` is the number of elements from which on a primitive may have one, by its name."""

    # Empty until the table is provided, by a module of a higher layer.
    least: Mapping[str, int] = {}
    load: Callable[[Primitive], Sequence[Form]]


_table = _Table()


def provide_forms(least: Mapping[str, int], load: Callable[[Primitive], Sequence[Form]]) -> None:
    """Sets the table of forms.

    Args:
      least: for the name of each primitive with forms the least number of elements of an operand. No program with
        fewer elements loads them.
      load: ``load(primitive)``, the forms of a primitive, in the order in which they are tried.
    """
    _table.least, _table.load = least, load


def form_for(f: Function, eqn: JaxprEqn, operands: Sequence[Value], params: dict[str, Any]) -> Any:
    """The lowering rule of the first form that applies to an equation; None for the portable rule."""
    primitive = eqn.primitive
    least = _table.least.get(primitive.name)
    # In this order by cost: nearly all equations end at the first test.
    if least is None or max(x.aval.size for x in operands) < least or not cpu_only(f):
        return None
    f.definitions.equation = eqn
    forms = _table.load(primitive)
    return next((form.write for form in forms if form.applies(f, *operands, **params)), None)
