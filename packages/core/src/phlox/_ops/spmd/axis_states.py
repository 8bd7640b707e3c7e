"""Primitives for partial results over the manual axes of a `shard_map`, whose types track them.

Along such an axis a value is in one of four states: equal on all devices ("invarying"), "varying", a partial result
("unreduced"), or equal with partial results as its cotangent ("reduced"). `manual_cast` declares another state, and
computes nothing. `unreduced_psum` combines partial results.

The rules for transposition return the cotangent as it is. `backward_pass` gives it the state that belongs to that of
the operand.
"""

from __future__ import annotations

from typing import Any

from ..._base.errors import PhloxError
from ..._ir.avals import ShapedArray
from ..._ir.primitive import Primitive, sharding_in_types, vma_in_types
from ..._ir.sharding_types import Reductions, entries_of, manual_reductions, reductions_of, spec_over
from ..._trace.trace import typeof
from ..._transform.array_operations import linear_jvp
from ..._xla.mesh import current_mesh
from ..._xla.text import Function, Value
from .collectives import Axes, pmax, pmin, psum, raise_unbound, varying_over

_COMBINED_BY = {"sum": psum, "max": pmax, "min": pmin}


def _in_state(x: ShapedArray, axes: Axes, state: str) -> ShapedArray:
    """The type of values that are in `state` along `axes`, and along others as `x` is."""
    unreduced, reduced, kind = reductions_of(x)
    sets = {"varying": x.vma, "unreduced": unreduced, "reduced": reduced}
    for name, known in sets.items():
        sets[name] = known.union(axes) if name == state else known.difference(axes)
    mesh = x.spec.mesh if x.spec is not None else current_mesh()
    if mesh is None:
        raise PhloxError("manual_cast outside of shard_map")
    reductions = Reductions(sets["unreduced"], sets["reduced"], kind if sets["unreduced"] else "sum")
    return x.varying(sets["varying"]).with_spec(spec_over(mesh.abstract_mesh, entries_of(x), reductions))


def _unreduced_psum_lower(f: Function, x: Value, axes: Axes, kind: str) -> Value:
    return _COMBINED_BY[kind].rule("lower")(f, x, axes=axes, axis_index_groups=None)[0]


def _change_of_state(name: str, **rules: Any) -> Primitive:
    """A primitive whose results are in another state than its operand along the parameter `axes`."""
    primitive = Primitive(
        name,
        vma=vma_in_types,
        sharding=sharding_in_types,
        jvp=linear_jvp(lambda: primitive),
        transpose=lambda ct, x, **_: [ct],
        batch=lambda axis, args, dims, **params: (primitive.bind(*args, **params), dims[0]),
        axes=lambda params: params["axes"],
        eager=lambda x, axes, **_: raise_unbound(axes),
        series="linear",
        **rules,
    )
    return primitive


manual_cast = _change_of_state(
    "manual_cast",
    types=lambda x, axes, to: _in_state(x, axes, to),
    lower=lambda f, x, axes, to: x,
    nan_checked=False,
    light=True,
)
unreduced_psum = _change_of_state(
    "unreduced_psum",
    types=lambda x, axes, kind: _in_state(x, axes, "invarying"),
    lower=_unreduced_psum_lower,
    nan_checked=True,
)


def state_of(x: ShapedArray, axis: Any) -> str:
    """The state of values of this type along a manual axis."""
    unreduced, reduced = manual_reductions(x)
    states = {"varying": x.vma, "unreduced": unreduced, "reduced": reduced}
    return next((state for state, axes in states.items() if axis in axes), "invarying")


def cast(x: Any, axes: Axes, state: str) -> Any:
    """`x`, declared as in this state along `axes`."""
    if state == "varying" and not any(manual_reductions(typeof(x))):
        return varying_over(x, axes)
    return manual_cast.bind(x, axes=axes, to=state)
