"""Serialization of programs with symbolic dimensions or meshes, as JSON.

A program is {"constraints": [text, …], "jaxprs": [j, …], "consts": [array, …]}; the last Jaxpr is the program, and the
others stand before those that use them. A Jaxpr is {"name", "avals", "consts", "in", "eqns", "out"}, where variables
are positions in "avals". An equation is [primitive, operands, results, parameters]; an operand is a variable, or
{"literal": number, "type"}. A symbolic dimension is text. Values of parameters that JSON lacks are objects with one key
that says what they are.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import importlib
from typing import Any

import numpy as np

from ..._base.errors import ExportError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.dimensions import SymbolicScope, is_symbolic
from ..._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from ..._ir.memory_spaces import Space
from ..._ir.primitive import Primitive, primitive
from ..._ir.sharding_types import spec_over
from ..._ops import all_primitives
from ..._ops.random.generators import Impl
from ..._ops.random.keys import KeyDtype, find_impl, key_dtype
from ..._xla.array import physical, put
from ..._xla.host_values import as_array
from ..._xla.mesh import AbstractMesh, AxisType, Mesh
from ..._xla.partition_spec import UNCONSTRAINED, PartitionSpec, UnreducedKind
from ..._xla.sharding import NamedSharding
from .dimensions import symbolic_shape


def dtype_as_json(dtype: Any) -> str:
    """The name of a dtype."""
    if isinstance(dtype, KeyDtype):
        return f"key<{dtype.impl.name}>"
    return "float0" if dtype == dtypes.float0 else str(dtype)  # NumPy cannot parse the name of float0


def dtype_from_json(name: str) -> Any:
    """The inverse of `dtype_as_json`."""
    if name == "float0":
        return dtypes.float0
    return key_dtype(name[4:-1]) if name.startswith("key<") else dtypes.as_dtype(name)


def aval_as_json(aval: ShapedArray) -> list[Any]:
    """A type as [dtype, shape, weak type]; then, if it is annotated, how it is split over explicit mesh axes, or its
    memory space."""
    # As text, which `symbolic_shape` reads back within the scope of the file.
    shape = [str(n) if is_symbolic(n) else n for n in aval.shape]
    written = [dtype_as_json(aval.dtype), shape, aval.weak_type]
    if aval.spec is not None:
        written.append({"mesh": _mesh_as_json(aval.spec.mesh), "split": aval.spec.entries})
    if aval.memory_space is not Space.Device:
        written.append({"memory": aval.memory_space.name})
    return written


def aval_from_json(written: list[Any], scope: SymbolicScope | None = None) -> ShapedArray:
    """The inverse of `aval_as_json`."""
    name, shape, weak_type, *annotations = written
    aval = shaped(tuple(_length(n, scope) for n in shape), dtype_from_json(name), weak_type)
    for annotation in annotations:
        if "memory" in annotation:
            aval = aval.in_space(Space[annotation["memory"]])
        else:
            aval = aval.with_spec(spec_over(_mesh_from_json(annotation["mesh"]), map(tuple, annotation["split"])))
    return aval


def _mesh_as_json(mesh: Mesh | AbstractMesh) -> list[Any]:
    """The axes of a mesh, each as [name, size, type]."""
    return [*zip(mesh.axis_names, mesh.axis_sizes, [kind.name for kind in mesh.axis_types], strict=True)]


def _mesh_from_json(axes: list[Any]) -> AbstractMesh:
    names, sizes, kinds = zip(*axes, strict=True)
    return AbstractMesh(sizes, names, tuple(AxisType[kind] for kind in kinds))


def sharding_as_json(sharding: NamedSharding | None) -> Any:
    """A sharding as [axes of its mesh, entries of its spec, kind of memory]; null for None."""
    return sharding and [_mesh_as_json(sharding.mesh), _spec_as_json(sharding.spec), sharding.kind]


def sharding_from_json(written: Any) -> NamedSharding | None:
    """The inverse of `sharding_as_json`."""
    if written is None:
        return None
    axes, spec, kind = written
    return NamedSharding(_mesh_from_json(axes), _spec_from_json(spec), memory_kind=kind)


def _spec_as_json(spec: PartitionSpec) -> list[Any]:
    # A list is a tuple of mesh axes; an axis that is left to the compiler has the name "?", which no mesh axis has.
    entries = ["?" if entry is UNCONSTRAINED else entry for entry in spec]
    kind = spec.unreduced_kind and spec.unreduced_kind.name
    return [entries, sorted(spec.unreduced), sorted(spec.reduced), kind]


def _spec_from_json(written: list[Any]) -> PartitionSpec:
    entries, unreduced, reduced, kind = written
    return PartitionSpec(
        *[UNCONSTRAINED if e == "?" else tuple(e) if isinstance(e, list) else e for e in entries],
        unreduced=frozenset(unreduced),
        reduced=frozenset(reduced),
        unreduced_kind=kind and UnreducedKind[kind],
    )


def _length(n: int | str, scope: SymbolicScope | None) -> Any:
    return symbolic_shape(n, scope=scope)[0] if isinstance(n, str) else n


# --- writing


def program_as_json(closed: ClosedJaxpr, scope: SymbolicScope | None) -> dict[str, Any]:
    """A program as data for JSON."""
    writer = _Writer()
    # Inner Jaxprs are written before those that use them, so the program is the last.
    writer.position(closed.jaxpr)
    consts = [_array_as_json(np.asarray(physical(as_array(c)))) for c in closed.consts]
    return {"constraints": list(scope.constraints) if scope else [], "jaxprs": writer.written, "consts": consts}


def _array_as_json(x: np.ndarray) -> list[Any]:
    return [dtype_as_json(x.dtype), x.shape, base64.b64encode(np.ascontiguousarray(x).tobytes()).decode()]


class _Writer:
    def __init__(self) -> None:
        self.written: list[Any] = []
        self.positions: dict[Jaxpr, int] = {}

    def position(self, jaxpr: Jaxpr) -> int:
        """The position of a Jaxpr among those that are written."""
        if jaxpr not in self.positions:
            written = self._jaxpr(jaxpr)
            self.positions[jaxpr] = len(self.written)
            self.written.append(written)
        return self.positions[jaxpr]

    def _jaxpr(self, jaxpr: Jaxpr) -> dict[str, Any]:
        variables: dict[Var, int] = {}

        def var(v: Var) -> int:
            # Variables are numbered in the order of their first occurrence.
            return variables.setdefault(v, len(variables))

        def atom(v: Atom) -> Any:
            if isinstance(v, Literal):
                return {"literal": _array_as_json(np.asarray(v.val)), "type": aval_as_json(v.aval)}
            return var(v)

        eqns = [
            [
                eqn.primitive.name,
                [*map(atom, eqn.invars)],
                [*map(var, eqn.outvars)],
                {name: self._value(x, eqn) for name, x in eqn.params.items()},
            ]
            for eqn in jaxpr.eqns
        ]
        inputs = [*map(var, jaxpr.constvars)], [*map(var, jaxpr.invars)]
        out = [*map(atom, jaxpr.outvars)]
        avals = [aval_as_json(v.aval) for v in variables]
        return {"name": jaxpr.name, "avals": avals, "consts": inputs[0], "in": inputs[1], "eqns": eqns, "out": out}

    def _value(self, x: Any, eqn: JaxprEqn) -> Any:
        # By class and not `isinstance`: a bool is an int, and an enumeration may be one.
        if x is None or type(x) in (bool, int, float, str):
            return x
        if is_symbolic(x):
            return {"dimension": str(x)}
        if isinstance(x, np.integer):
            return int(x)
        if type(x) in (tuple, list):
            return {type(x).__name__: [self._value(item, eqn) for item in x]}
        # Programs inside of parameters have no constants, which the file has no place for.
        if type(x) is ClosedJaxpr and not x.consts:
            return {"closed": self.position(x.jaxpr)}
        if type(x) is Jaxpr:
            return {"jaxpr": self.position(x)}
        if type(x) is ShapedArray:
            return {"type": aval_as_json(x)}
        if isinstance(x, np.dtype | dtypes.ExtendedDtype):
            return {"dtype": dtype_as_json(x)}
        if isinstance(x, AbstractMesh):
            return {"mesh": _mesh_as_json(x)}
        if isinstance(x, PartitionSpec):
            return {"spec": _spec_as_json(x)}
        if isinstance(x, Impl):
            return {"keys": x.name}
        if isinstance(x, Primitive):
            return {"primitive": x.name}
        if isinstance(x, np.ndarray | np.generic):
            return {"array": _array_as_json(np.asarray(x)), "scalar": isinstance(x, np.generic)}
        # Only classes of phlox: a file must not name a class that runs other code.
        ours = type(x).__module__.startswith("phlox.")
        if isinstance(x, enum.Enum) and ours:
            return {"enum": [type(x).__module__, type(x).__qualname__, x.name]}
        if ours and (hasattr(x, "_fields") or dataclasses.is_dataclass(x)):
            names = getattr(x, "_fields", None) or [f.name for f in dataclasses.fields(x)]
            fields = {name: self._value(getattr(x, name), eqn) for name in names}
            return {"object": [type(x).__module__, type(x).__qualname__, fields]}
        raise ExportError(
            f"an exported function for symbolic shapes or several devices cannot be serialized: {eqn.primitive.name} "
            f"has a parameter of type {type(x).__name__}",
            instead="shapes of numbers, on one device",
            primitive=eqn.primitive.name,
        )


# --- reading


def scope_from_json(written: dict[str, Any]) -> SymbolicScope:
    """The scope of a program that `program_as_json` wrote."""
    return SymbolicScope(written["constraints"])


def program_from_json(written: dict[str, Any], scope: SymbolicScope) -> ClosedJaxpr:
    """The inverse of `program_as_json`."""
    reader = _Reader(scope)
    for jaxpr in written["jaxprs"]:
        reader.jaxprs.append(reader.jaxpr(jaxpr))
    program = reader.jaxprs[-1]
    consts = [put(_array_from_json(c), v.aval) for c, v in zip(written["consts"], program.constvars, strict=True)]
    return ClosedJaxpr(program, consts)


def _array_from_json(written: list[Any]) -> np.ndarray:
    name, shape, data = written
    if name == "float0":  # whose elements have no bytes
        return np.zeros(shape, dtypes.float0)
    return np.frombuffer(base64.b64decode(data), dtype_from_json(name)).reshape(shape)


class _Reader:
    def __init__(self, scope: SymbolicScope):
        self.scope = scope
        self.jaxprs: list[Jaxpr] = []

    def jaxpr(self, written: dict[str, Any]) -> Jaxpr:
        variables = [Var(aval_from_json(aval, self.scope)) for aval in written["avals"]]

        def atom(a: Any) -> Atom:
            if isinstance(a, int):
                return variables[a]
            return Literal(_array_from_json(a["literal"])[()], aval_from_json(a["type"], self.scope))

        eqns = [
            JaxprEqn(
                [*map(atom, operands)],
                [variables[i] for i in results],
                _primitive(name),
                {key: self._value(x) for key, x in params.items()},
            )
            for name, operands, results, params in written["eqns"]
        ]
        constvars, invars = ([variables[i] for i in written[key]] for key in ("consts", "in"))
        return Jaxpr(constvars, invars, [*map(atom, written["out"])], eqns, name=written["name"])

    def _value(self, x: Any) -> Any:
        if not isinstance(x, dict):
            return x
        match x:
            case {"dimension": text}:
                return _length(text, self.scope)
            case {"tuple": items}:
                return tuple(map(self._value, items))
            case {"list": items}:
                return list(map(self._value, items))
            case {"closed": position}:
                return ClosedJaxpr(self.jaxprs[position])
            case {"jaxpr": position}:
                return self.jaxprs[position]
            case {"type": aval}:
                return aval_from_json(aval, self.scope)
            case {"dtype": name}:
                return dtype_from_json(name)
            case {"mesh": axes}:
                return _mesh_from_json(axes)
            case {"spec": spec}:
                return _spec_from_json(spec)
            case {"keys": name}:
                return find_impl(name)
            case {"primitive": name}:
                return _primitive(name)
            case {"array": array, "scalar": scalar}:
                return _array_from_json(array)[()] if scalar else _array_from_json(array)
            case {"enum": [module, name, member]}:
                return _class(module, name)[member]
            case {"object": [module, name, fields]}:
                return _class(module, name)(**{key: self._value(value) for key, value in fields.items()})
        raise ExportError(f"deserialize: a parameter is {x!r:.60}")


def _primitive(name: str) -> Primitive:
    # Most primitives of a program are registered already; all others are imported only if one is missing.
    try:
        return primitive(name)
    except KeyError:
        known = all_primitives()  # imports all modules of primitives
        if name not in known:
            raise ExportError(f"deserialize: this phlox has no primitive {name!r}") from None
        return known[name]


def _class(module: str, name: str) -> Any:
    """A class of phlox: an enumeration, a named tuple or a dataclass."""
    candidate: Any = None
    # A file may come from anywhere: only these kinds of classes of phlox are made from it.
    if module.startswith("phlox.") and name.isidentifier():
        candidate = getattr(importlib.import_module(module), name, None)
    if isinstance(candidate, type) and (
        issubclass(candidate, enum.Enum) or hasattr(candidate, "_fields") or dataclasses.is_dataclass(candidate)
    ):
        return candidate
    raise ExportError(f"deserialize: a parameter is of the class {module}.{name}, which this phlox does not have")
