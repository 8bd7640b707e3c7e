"""Exported functions of symbolic shapes, and over several devices: a program that each call compiles for its own.

It is kept as a Jaxpr whose types and parameters hold symbolic dimensions and meshes without devices. The Python
functions of custom derivative rules are left out: an exported function brings its derivative as a program of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._base import pytree
from ..._base.errors import ExportError, InconclusiveDimensionOperation, OptionError, ShapeError
from ..._base.interning import clear_if_full
from ..._base.pytree import PyTreeDef
from ..._ir.avals import ShapedArray
from ..._ir.bounds import bounds
from ..._ir.dimensions import SymbolicDim, SymbolicScope, evaluated, is_symbolic, names_in, variable
from ..._ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn
from ..._ir.substitution import program_for
from ..._ops.control.call import call, jit_p
from ..._ops.control.exported import check_argument
from ..._ops.control.padded_call import call_padded
from ..._ops.random.generators import Impl
from ..._ops.spmd.reshard import mesh_cast, transfer
from ..._trace.trace import typeof
from ..._xla.array import physical, put
from ..._xla.host_values import as_array
from ..._xla.mesh import Mesh
from ..jit.programs import ShapeDtypeStruct

_SPECIFICATION = "Input shapes do not match the polymorphic shapes specification"
_CONSTRAINT = "Input shapes do not match the symbolic shape constraint"


def leaf_paths(tree: PyTreeDef) -> list[str]:
    """Names of the leaves of (args, kwargs), such as ``args[0]['x']``."""
    paths = pytree.named_paths(tree)
    # The root is the pair (args, kwargs), so the first key is 0 or 1.
    return [("args", "kwargs")[path[0].idx] + pytree.keystr(path[1:]) for path in paths]


def scope_of(avals: Sequence[ShapedArray | ShapeDtypeStruct]) -> SymbolicScope | None:
    """The scope of the symbolic dimensions in these types; None if there are none. Raises if there are several."""
    dims = [n for aval in avals for n in aval.shape if is_symbolic(n)]
    for other in dims:
        # Lengths of two scopes cannot be compared, as the same name may mean two lengths.
        if other.scope is not dims[0].scope:
            raise OptionError(
                f"Invalid mixing of symbolic scopes: {dims[0]} and {other} belong to different ones",
                instead="symbolic_shape(..., scope=...) with one SymbolicScope for both",
            )
    return dims[0].scope if dims else None


class PolymorphicProgram:
    """A program for arguments of types `in_avals`, with symbolic dimensions of one scope, or none.

    `arg_names` are the names of the arguments in errors: ``args[0]``. With `is_padded` one program is compiled for all
    sizes, which have bounds; else one for each.
    """

    def __init__(
        self,
        name: str,
        closed: ClosedJaxpr,
        in_avals: Sequence[ShapedArray],
        out_avals: Sequence[ShapedArray],
        arg_names: Sequence[str],
        is_padded: bool = False,
    ):
        self.name = name
        self.closed = closed
        self.in_avals = tuple(in_avals)
        self.out_avals = tuple(out_avals)
        self.arg_names = tuple(arg_names)
        self.is_padded = is_padded
        self.scope = scope_of(self.in_avals)
        #: the programs for values of the names
        self.concrete: dict[Any, ClosedJaxpr] = {}
        self._check_solvable()

    def __call__(self, *leaves: Any) -> list[Any]:
        avals = [typeof(x) for x in leaves]
        for expected, got, name in zip(self.in_avals, avals, self.arg_names, strict=True):
            check_argument(self.name, name, expected, got)
        values = self._solved([aval.shape for aval in avals])
        # Sorted, since the order of the names depends on the arguments.
        key = tuple(sorted(values.items()))
        if self.is_padded:
            ranges = tuple((name, *bounds(variable(name, self.scope))) for name, _ in key)  # type: ignore[arg-type]
            return call_padded(self.closed, leaves, lengths=key, ranges=ranges)
        program = self.concrete.get(key)
        if program is None:
            # Bounded, as a service may see any number of shapes.
            program = clear_if_full(self.concrete)[key] = program_for(self.closed, values)
        return call(program, leaves, name=self.name)

    # -- the values of the names

    def _equations(self, shapes: Sequence[Sequence[Any]]) -> list[tuple[Any, Any, str]]:
        """(dimension, its value, where it stands)."""
        return [
            (dim, n, f"{place}.shape[{axis}]")
            for aval, shape, place in zip(self.in_avals, shapes, self.arg_names, strict=True)
            for axis, (dim, n) in enumerate(zip(aval.shape, shape, strict=True))
        ]

    def _check_solvable(self) -> None:
        """Raises unless shapes determine all names."""
        names = set().union(*[names_in(n) for aval in (*self.in_avals, *self.out_avals) for n in aval.shape])
        known: set[str] = set()
        pending = [dim for aval in self.in_avals for dim in aval.shape if is_symbolic(dim)]
        # A name is known once some length depends on it alone, and in linear form.
        while name := next((n for dim in pending if (n := _unknown(dim, known)) is not None), None):
            known.add(name)
        if names - known:
            raise ExportError(
                f"export of {self.name}: Cannot solve for values of dimension variables {sorted(names - known)}: no "
                f"argument has a length that is linear in each of them; the types are "
                f"{', '.join(aval.short for aval in self.in_avals)}",
                instead="an argument with such an axis, of length a rather than a*b",
            )

    def _solved(self, shapes: Sequence[Sequence[Any]]) -> dict[str, Any]:
        equations = self._equations(shapes)
        values: dict[str, Any] = {}
        origins: list[str] = []
        # Each turn finds one name; a name may need others that were found before.
        while equation := next((s for s in equations if _unknown(s[0], set(values)) is not None), None):
            dim, n, where = equation
            name = _unknown(dim, set(values))
            assert name is not None
            values[name] = self._value(name, evaluated(dim, values), n, where, origins)
            origins.append(f"'{name}' = {values[name]} from specification '{dim}' for dimension {where} (= {n})")
            problem = f"{_SPECIFICATION}. Expected value >= 1 for dimension variable '{name}'"
            self._check_not_negative(values[name] - 1, problem, origins)
        # Then all lengths are compared, also those that determined nothing.
        for dim, n, where in equations:
            if evaluated(dim, values) != n:
                raise self._refused(
                    f"{_SPECIFICATION}. Found inconsistency between dimension size {where} (= {n}) and the "
                    f"specification '{dim}' (= {evaluated(dim, values)})",
                    origins,
                )
        self._check_constraints(values, origins)
        return values

    def _check_constraints(self, values: dict[str, Any], origins: Sequence[str]) -> None:
        scope = self.scope
        if scope is None:
            return
        for fact in scope.not_negative:
            self._check_not_negative(evaluated(fact, values), f"{_CONSTRAINT} {fact} >= 0", origins)
        for term, (factor, right) in scope.equal.items():
            left = SymbolicDim({term: factor}, scope)
            # A name that equals something else occurs in no type, and has no value.
            if names_in(left) <= set(values) and evaluated(left, values) != evaluated(right, values):
                raise self._refused(f"{_CONSTRAINT} {left} == {right}", origins)

    def _value(self, name: str, dim: Any, n: Any, where: str, origins: Sequence[str]) -> Any:
        """The value of `name`, the only one in ``dim == n``."""
        term = ((name, 1),)
        factor = dim.terms[term]
        # The value is n, less the rest of the dimension, divided by the factor.
        value, rest = divmod(n - (dim - factor * variable(name, dim.scope)), factor)
        if rest != 0:
            raise self._refused(
                f"{_SPECIFICATION}. Division had remainder {rest} when computing the value of '{name}' from {where}",
                origins,
            )
        return value

    def _check_not_negative(self, difference: Any, problem: str, origins: Sequence[str]) -> None:
        """Raises unless the difference of two lengths is at least 0, for all lengths that it may depend on."""
        try:
            holds, instead = difference >= 0, ""
        # In another exported function, the lengths may be symbolic.
        except InconclusiveDimensionOperation as error:
            holds, instead = False, error.instead
        if not holds:
            raise self._refused(problem, origins, instead)

    def _refused(self, problem: str, origins: Sequence[str], instead: str = "") -> ShapeError:
        """The error for shapes that do not fit. `origins` tells where the values of the names come from."""
        shapes = [aval.shape for aval in self.in_avals]
        specified = ", ".join(f"{name}.shape = {shape}" for name, shape in zip(self.arg_names, shapes, strict=True))
        return ShapeError(
            f"{problem}. Using the following polymorphic shapes specifications: {specified}. Obtained dimension "
            f"variables: {', '.join(origins)}",
            instead=instead,
            shapes=shapes,
        )


def _unknown(dim: Any, known: set[str]) -> str | None:
    """The name that the value of `dim` determines, if the names `known` have values; None if there is none."""
    if not is_symbolic(dim):
        return None
    missing = names_in(dim) - known
    if len(missing) != 1:
        return None
    (name,) = missing
    linear = ((name, 1),)
    # A name that also occurs in a product or an operation cannot be solved for.
    others = [term for term in dim.terms if name in names_in(SymbolicDim({term: 1}, dim.scope))]
    return name if others == [linear] else None


def for_other_processes(closed: ClosedJaxpr, function: str) -> ClosedJaxpr:
    """The program with calls of Jaxprs in place of functions that have derivative or batching rules of their own, and
    with the axes of meshes and the values of closed-over arrays in place of those on devices."""
    converted: dict[Jaxpr, Jaxpr] = {}

    def plain(jaxpr: Jaxpr) -> Jaxpr:
        # A Jaxpr that is called twice is converted once, and stays one function of the program.
        if jaxpr not in converted:
            converted[jaxpr] = jaxpr.replace(eqns=[*map(equation, jaxpr.eqns)])
        return converted[jaxpr]

    def equation(eqn: JaxprEqn) -> JaxprEqn:
        params = eqn.params
        if eqn.primitive is transfer:  # to a device of this process
            return JaxprEqn(eqn.invars, eqn.outvars, mesh_cast, {"axes": ()}, eqn.source_info)
        # The operation holds the program of its function under this parameter.
        if eqn.primitive.program is not None and eqn.primitive is not jit_p:
            inner = params[eqn.primitive.program]
            params = {"jaxpr": inner, "name": inner.jaxpr.name or eqn.primitive.name, "inline": False}
            eqn = JaxprEqn(eqn.invars, eqn.outvars, jit_p, params, eqn.source_info)
        return eqn.replace(params={name: value(name, x, eqn) for name, x in params.items()})

    def value(name: str, x: Any, eqn: JaxprEqn) -> Any:
        if isinstance(x, ClosedJaxpr):
            return ClosedJaxpr(plain(x.jaxpr), x.consts)
        if isinstance(x, Jaxpr):
            return plain(x)
        if isinstance(x, Mesh):
            return x.abstract_mesh
        # `Impl` is a named tuple of functions that a file names by its name.
        if isinstance(x, tuple) and not isinstance(x, Impl):
            items = [value(name, item, eqn) for item in x]
            return type(x)(*items) if hasattr(x, "_fields") else tuple(items)
        # Primitives are callable objects in parameters too, and have a name.
        if callable(x) and not isinstance(x, type) and not hasattr(x, "bind"):
            raise ExportError(
                f"export of {function} for symbolic shapes or several devices: the parameter {name} of "
                f"{eqn.primitive.name} is a function",
                instead="shapes of numbers, on one device",
            )
        return x

    consts = zip(closed.jaxpr.constvars, closed.consts, strict=True)
    return ClosedJaxpr(plain(closed.jaxpr), [put(np.asarray(physical(as_array(c))), v.aval) for v, c in consts])
