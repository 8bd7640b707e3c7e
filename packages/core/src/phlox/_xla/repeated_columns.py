"""Compiler options for products with a matrix of equal columns, such as ``x @ jnp.ones((n, n))``, in programs for CPUs.

XLA hands a product together with the sum of its elements to a library (YNN) as one call. If the product has a batch
axis, and the columns of its second factor are equal because they are a broadcast of one, that call reads memory that
nobody has written, and the sum is arbitrary (jaxlib 0.10.2 to 0.12, and so jax). With the option the library gets the
product alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from .._ir.jaxpr import Atom, Jaxpr, JaxprEqn, Var, jaxprs_in
from .compared_values import programs_of
from .cpu_emitter import Overrides

_FUSIONS = "xla_cpu_experimental_ynn_fusion_type"
_PRODUCTS_ALONE: Overrides = ((_FUSIONS, "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"),)

#: so many operations on the way from a broadcast to a factor are followed
_MOST = 50


def product_options(jaxpr: Jaxpr) -> Overrides:
    """The compiler options for this program; the user's options override them."""
    if _FUSIONS in os.environ.get("XLA_FLAGS", ""):
        return ()
    return _PRODUCTS_ALONE if _Values(jaxpr).has_repeated_columns() else ()


class _Values:
    """The values of a Jaxpr, and the axes along which their elements are known to be equal.

    Args:
      operands: the values that inputs have in the Jaxpr around this one.
      outer: the values of that Jaxpr.
    """

    def __init__(self, jaxpr: Jaxpr, operands: dict[Var, Atom] | None = None, outer: _Values | None = None):
        self._jaxpr, self._operands, self._outer = jaxpr, operands or {}, outer
        self._known: dict[Var, frozenset[int]] = {}
        self._definitions: dict[Var, JaxprEqn] = {}

    def has_repeated_columns(self) -> bool:
        """Whether a product, also in the programs of an operation, has a second factor of equal columns."""
        for eqn in self._jaxpr.eqns:
            if eqn.primitive.name == "dot_general":
                (_, contracted), (_, batch) = eqn.params["dimension_numbers"]
                factor = eqn.invars[1]
                columns = self.axes(factor).difference(contracted, batch)
                if any(factor.aval.shape[i] != 1 for i in columns):
                    return True
            elif eqn.primitive.holds_programs and any(x.has_repeated_columns() for x in self._inside(eqn)):
                return True
        return False

    def axes(self, x: Atom, length: int = 0) -> frozenset[int]:
        """The axes of `x` along which its elements are known to be equal. `length` operations were followed to it."""
        if not isinstance(x, Var):
            return frozenset(range(x.aval.ndim))
        axes = self._known.get(x)
        if axes is None:
            axes = self._known[x] = self._axes(x, length + 1) if length < _MOST else frozenset()
        return axes

    def _axes(self, x: Var, length: int) -> frozenset[int]:
        if self._outer is not None and x in self._operands:
            return self._outer.axes(self._operands[x], length)
        if not self._definitions:
            self._definitions = {v: eqn for eqn in self._jaxpr.eqns for v in eqn.outvars}
        eqn = self._definitions.get(x)
        return frozenset() if eqn is None else self._of_result(x, eqn, length)

    def _inside(self, eqn: JaxprEqn) -> Iterator[_Values]:
        """The values of the programs of an equation."""
        for inner, inputs in programs_of(eqn) or [(inner, ()) for inner in jaxprs_in(eqn.params)]:
            # XLA moves broadcasts into loops where they are constants of the loop.
            count = eqn.params.get("num_consts", eqn.params.get("body_nconsts"))
            pairs = zip(inner.invars, inputs[:count], strict=False)
            yield _Values(inner, {v: x for v, x in pairs if v.aval.shape == x.aval.shape}, self)

    def _of_result(self, v: Var, eqn: JaxprEqn, length: int) -> frozenset[int]:
        name, params, operands, ndim = eqn.primitive.name, eqn.params, eqn.invars, v.aval.ndim
        if eqn.primitive.program is not None:
            program = params[eqn.primitive.program].jaxpr
            values = next(x for x in self._inside(eqn) if x._jaxpr is program)
            return values.axes(program.outvars[eqn.outvars.index(v)], length)
        if name == "broadcast_in_dim":
            axes = _with_ones(operands[0], self.axes(operands[0], length))
            return frozenset(range(ndim)) - {k for i, k in enumerate(params["broadcast_dimensions"]) if i not in axes}
        if name == "transpose":
            axes = self.axes(operands[0], length)
            return frozenset(i for i, axis in enumerate(params["permutation"]) if axis in axes)
        if name in ("reshape", "squeeze"):
            axes = _with_ones(operands[0], self.axes(operands[0], length))
            return _reshaped(axes, operands[0].aval.shape, v.aval.shape)
        if name == "iota":
            return frozenset(range(ndim)) - {params["dimension"]}
        # Other operations on arrays with as many axes count as elementwise. An operand without axes is a number.
        arrays = [x for x in operands if x.aval.ndim]
        if not operands or any(x.aval.ndim != ndim for x in arrays):
            return frozenset()
        axes = frozenset(range(ndim))
        for x in arrays:
            axes &= _with_ones(x, self.axes(x, length))
            if not axes:  # most often after one operand
                break
        return axes


def _with_ones(x: Atom, axes: frozenset[int]) -> frozenset[int]:
    """`axes` and those of length 1."""
    return axes.union(i for i, size in enumerate(x.aval.shape) if size == 1) if 1 in x.aval.shape else axes


def _reshaped(axes: frozenset[int], shape: Sequence[int], new: Sequence[int]) -> frozenset[int]:
    """The axes of an array of shape `new` along which the elements are equal, as they are along `axes` of `shape`."""
    result: set[int] = set()
    i = j = 0
    while j < len(new) and 0 not in shape:
        # The next axes of both shapes that have equally many elements together.
        start, first, before, after = i, j, 1, new[j]
        j += 1
        while before != after:
            if before < after:
                before *= shape[i]
                i += 1
            else:
                after *= new[j]
                j += 1
        if axes.issuperset(range(start, i)):
            result.update(range(first, j))
    return frozenset(result)
