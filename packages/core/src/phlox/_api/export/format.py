"""Serialization of exported functions.

    phlox.export 4\\n        magic string with the version of the format
    checksum                SHA-256 of all other bytes, 32 bytes
    {...}\\n                 one line of JSON: {"functions": [f, f's vjp, the vjp of that, …]}
    programs                the bytes of each function's programs, concatenated; the field "size" has the length of all
                            of them, "parts" the start and the end of that for each platform (if absent, there is one
                            program); for symbolic shapes and several devices JSON, see `program_format.py`

A function in JSON has the fields of `Exported` by name. A type is [dtype, shape, weak type]. A treedef is "*" for a
leaf, null for None, {"tuple": [...]}, {"list": [...]}, {"dict": [[key, ...], [child, ...]]}, and for classes registered
with `register_pytree_node_serialization` {"node": name, "data": base64 of the auxiliary data, "children": [...]}.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from ..._base import pytree
from ..._base.errors import ArgumentError, ExportError, OptionError
from ..._base.pytree import PyTreeDef
from ..._ops.host.ffi import FfiEffect
from .export import (
    DisabledSafetyCheck,
    Exported,
    maximum_supported_calling_convention_version as newest,
    minimum_supported_calling_convention_version as oldest,
)
from .polymorphic import PolymorphicProgram, leaf_paths
from .program_format import (
    aval_as_json,
    aval_from_json,
    program_as_json,
    program_from_json,
    scope_from_json,
    sharding_as_json,
    sharding_from_json,
)

_MAGIC = b"phlox.export 4\n"
_START = len(_MAGIC) + 32
_T = TypeVar("_T", bound=type)


class _Node(NamedTuple):
    """The serialization of one class of pytree nodes."""

    nodetype: type
    name: str
    serialize: Callable[[Any], bytes]
    deserialize: Callable[[bytes], Any]
    build: Callable[[Any, Sequence[Any]], Any] | None


_by_type: dict[type, _Node] = {}
_by_name: dict[str, _Node] = {}


def register_pytree_node_serialization(
    nodetype: _T,
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Sequence[Any]], Any] | None = None,
) -> _T:
    """Registers how a class of pytree nodes is serialized in exported functions.

    Args:
      nodetype: the class; it must be registered with `phlox.tree_util` already.
      serialized_name: the name of the class in serialized functions.
      serialize_auxdata, deserialize_auxdata: functions from the auxiliary data of the class to bytes, and back.
      from_children: makes an instance from auxiliary data and children; None for the function registered with
        `phlox.tree_util`.

    Returns:
      `nodetype`, so that it can be used as a class decorator.

    Raises:
      OptionError: the class or the name is registered already, or the class is no container.

    >>> class Pair(tuple):
    ...     pass
    >>> phlox.tree_util.register_pytree_node(Pair, lambda pair: (tuple(pair), None), lambda _, xs: Pair(xs))
    >>> _ = register_pytree_node_serialization(
    ...     Pair,
    ...     serialized_name="documentation.Pair",
    ...     serialize_auxdata=lambda aux: b"",
    ...     deserialize_auxdata=lambda data: None,
    ... )
    >>> saved = phlox.export.export(phlox.jit(lambda pair: pair[0] + pair[1]))(Pair((1.0, 2.0))).serialize()
    >>> deserialize(saved).call(Pair((1.0, 2.0)))
    Array(3., dtype=float32, weak_type=True)
    """
    if nodetype in _by_type:
        raise OptionError(f"{nodetype.__name__} is registered for serialization as {_by_type[nodetype].name!r} already")
    if serialized_name in _by_name:
        raise OptionError(
            f"the name {serialized_name!r} is registered for serialization already",
            instead=f"another name than that of {_by_name[serialized_name].nodetype.__name__}",
        )
    if from_children is None and not pytree.is_tree_node(nodetype):
        raise OptionError(
            f"{nodetype.__name__} is no container",
            instead="phlox.tree_util.register_pytree_node first, or from_children=...",
        )
    node = _Node(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children)
    _by_type[nodetype] = _by_name[serialized_name] = node
    return nodetype


def register_namedtuple_serialization(nodetype: _T, *, serialized_name: str) -> _T:
    """Registers a class of named tuples for serialization in exported functions.

    Args:
      nodetype: the class.
      serialized_name: the name of the class in serialized functions.

    Returns:
      `nodetype`.

    Raises:
      OptionError: the class or the name is registered already, or the class is no named tuple class.

    >>> import collections
    >>> Point = collections.namedtuple("Point", ["x", "y"])
    >>> register_namedtuple_serialization(Point, serialized_name="docs.Point") is Point
    True
    """
    if not (issubclass(nodetype, tuple) and hasattr(nodetype, "_fields")):
        raise OptionError(
            f"{nodetype.__name__} is no class of named tuples", instead="register_pytree_node_serialization"
        )
    fields = list(nodetype._fields)

    def build(names: Any, children: Sequence[Any]) -> Any:
        return nodetype(**dict(zip(names, children, strict=True)))

    return register_pytree_node_serialization(
        nodetype,
        serialized_name=serialized_name,
        serialize_auxdata=lambda _: json.dumps(fields).encode(),
        deserialize_auxdata=lambda data: json.loads(data),
        from_children=build,
    )


register_pytree_node_serialization(
    OrderedDict,
    serialized_name="collections.OrderedDict",
    serialize_auxdata=lambda keys: json.dumps(_plain_keys(keys)).encode(),
    deserialize_auxdata=lambda data: tuple(json.loads(data)),
)


# --- writing


def serialize(exported: Exported, vjp_order: int) -> bytearray:
    """The bytes of an exported function and of its derivatives up to order `vjp_order`."""
    functions = [exported]
    for _ in range(vjp_order):
        functions.append(functions[-1].vjp())
    programs = [_program_as_bytes(f) for f in functions]
    header = json.dumps({"functions": [_function_as_json(f, len(p)) for f, p in zip(functions, programs, strict=True)]})
    content = b"".join([header.encode(), b"\n", *programs])
    return bytearray(_MAGIC + _checksum(content) + content)


def _checksum(content: bytes) -> bytes:
    # With the magic string, so that a file of another version does not pass with its checksum.
    return hashlib.sha256(_MAGIC + content).digest()


def _program_as_bytes(f: Exported) -> bytes:
    program = f.polymorphic
    if program is None:
        return b"".join(dict.fromkeys(f.programs.values()))
    return json.dumps(program_as_json(program.closed, program.scope)).encode()


def _function_as_json(f: Exported, size: int) -> dict[str, Any]:
    return {
        "fun_name": f.fun_name,
        "in_tree": _tree_as_json(f.in_tree),
        "in_avals": [aval_as_json(a) for a in f.in_avals],
        "out_tree": _tree_as_json(f.out_tree),
        "out_avals": [aval_as_json(a) for a in f.out_avals],
        "platforms": f.platforms,
        "disabled_safety_checks": [str(check) for check in f.disabled_safety_checks],
        "calls_with_effects": bool(f.unordered_effects),
        "module_kept_var_idx": f.module_kept_var_idx,
        "calling_convention_version": f.calling_convention_version,
        "polymorphic": f.polymorphic is not None,
        "nr_devices": f.nr_devices,
        "in_shardings": [sharding_as_json(s) for s in f._in_named_shardings],
        "out_shardings": [sharding_as_json(s) for s in f._out_named_shardings],
        "padded": f.polymorphic is not None and f.polymorphic.is_padded,
        "parts": _parts(f),
        "size": size,
    }


def _parts(f: Exported) -> dict[str, tuple[int, int]]:
    """The start and the end of the program for each platform, in the bytes of all programs."""
    spans: dict[bytes, tuple[int, int]] = {}
    start = 0
    # Most programs are the same for all platforms.
    for program in dict.fromkeys(f.programs.values()):
        spans[program] = (start, start + len(program))
        start += len(program)
    return {platform: spans[program] for platform, program in f.programs.items()}


def _tree_as_json(tree: PyTreeDef) -> Any:
    data = tree.node_data()
    if data is None:
        return "*"
    kind, aux = data
    children = [_tree_as_json(child) for child in tree.children()]
    if kind is type(None):
        return None
    if kind in (tuple, list):
        return {kind.__name__: children}
    if kind is dict:
        return {"dict": [_plain_keys(aux), children]}
    node = _by_type.get(kind)
    if node is None:
        raise ExportError(
            f"arguments or results contain a {kind.__name__}, and nothing says how that is written",
            instead="phlox.export.register_pytree_node_serialization (for named tuples "
            "register_namedtuple_serialization), where the class is defined",
            nodetype=kind,
        )
    return {"node": node.name, "data": base64.b64encode(node.serialize(aux)).decode(), "children": children}


def _plain_keys(keys: Sequence[Any]) -> list[Any]:
    for key in keys:
        # JSON has no other keys; a tuple would come back as a list.
        if not isinstance(key, str | int | float):
            raise ExportError(f"arguments or results contain a dict with the key {key!r}", instead="a string or number")
    return list(keys)


# --- reading


def deserialize(blob: bytes | bytearray) -> Exported:
    """An exported function from the bytes that `Exported.serialize` returned, in this process or in another one.

    A checksum detects damaged bytes. It does not authenticate them.

    Args:
      blob: the bytes.

    Returns:
      An `Exported`, whose method ``call`` runs the function.

    Raises:
      ArgumentError: `blob` is no bytes.
      ExportError: the bytes are damaged, of another format or version, or name a class that is not registered here.

    >>> saved = phlox.export.export(phlox.jit(lambda x: 2 * x))(3.0).serialize()
    >>> deserialize(saved).call(3.0)
    Array(6., dtype=float32, weak_type=True)
    """
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise ArgumentError(f"deserialize: {type(blob).__name__} is no bytes", instead="file.read_bytes()")
    data = bytes(blob)
    if not data.startswith(_MAGIC):
        what = "of another version" if data.startswith(b"phlox.export ") else "that phlox did not write"
        raise ExportError(f"deserialize: these are bytes {what}", instead="what Exported.serialize() returned")
    content = data[_START:]
    if data[len(_MAGIC) : _START] != _checksum(content):
        raise ExportError(
            f"deserialize: these {len(data)} bytes are damaged: their checksum is another",
            instead="all bytes that Exported.serialize() returned",
        )
    try:
        return _function_from_content(content)
    except ExportError:
        raise
    except Exception as error:  # the user's `deserialize_auxdata` may raise anything
        raise ExportError(f"deserialize: this is no exported function: {error!r}") from error


def _function_from_content(content: bytes) -> Exported:
    header, _, rest = content.partition(b"\n")
    written = json.loads(header)["functions"]
    programs = []
    for fields in written:
        programs.append(rest[: fields["size"]])
        rest = rest[fields["size"] :]
    # The sizes in the header must be those of the programs.
    if rest or not written:
        raise ExportError(f"deserialize: {len(written)} functions, and {len(rest)} bytes more")
    exported: Exported | None = None
    # From the last derivative to the function, as each holds the next.
    for fields, program in zip(reversed(written), reversed(programs), strict=True):
        exported = _function_from_json(fields, program, exported)
    assert exported is not None
    return exported


def _function_from_json(fields: dict[str, Any], program: bytes, derivative: Exported | None) -> Exported:
    version = fields["calling_convention_version"]
    if not oldest <= version <= newest:
        raise ExportError(f"deserialize: calling convention {version}, and this phlox knows {oldest} to {newest}")
    written = json.loads(program) if fields["polymorphic"] else None
    scope = None if written is None else scope_from_json(written)
    in_tree = _tree_from_json(fields["in_tree"])
    in_avals, out_avals = (tuple(aval_from_json(a, scope) for a in fields[key]) for key in ("in_avals", "out_avals"))
    polymorphic = None
    if written is not None and scope is not None:
        closed = program_from_json(written, scope)
        arg_names, is_padded = leaf_paths(in_tree), fields.get("padded", False)
        polymorphic = PolymorphicProgram(fields["fun_name"], closed, in_avals, out_avals, arg_names, is_padded)
    parts = fields.get("parts") or dict.fromkeys(fields["platforms"], (0, len(program)))
    return Exported(
        fields["fun_name"],
        in_tree,
        in_avals,
        _tree_from_json(fields["out_tree"]),
        out_avals,
        tuple(fields["platforms"]),
        tuple(DisabledSafetyCheck(check) for check in fields["disabled_safety_checks"]),
        {} if polymorphic is not None else {name: program[start:end] for name, (start, end) in parts.items()},
        tuple(fields["module_kept_var_idx"]),
        None if derivative is None else lambda _: derivative,
        fields["nr_devices"],
        tuple(map(sharding_from_json, fields["in_shardings"])),
        tuple(map(sharding_from_json, fields["out_shardings"])),
        calling_convention_version=version,
        unordered_effects=(FfiEffect(),) if fields["calls_with_effects"] else (),
        uses_global_constants=polymorphic is not None and polymorphic.scope is not None,
        polymorphic=polymorphic,
    )


def _tree_from_json(written: Any) -> PyTreeDef:
    return pytree.tree_structure(_example(written))


def _example(written: Any) -> Any:
    """A tree with this treedef, whose leaves are 0."""
    # A tree is rebuilt from an example, as treedefs of a user's registry cannot be pickled.
    if written == "*":
        return 0
    if written is None:
        return None
    if "node" not in written:
        ((kind, inside),) = written.items()
        if kind == "dict":
            keys, children = inside
            return dict(zip(keys, map(_example, children), strict=True))
        return (tuple if kind == "tuple" else list)(map(_example, inside))
    node = _by_name.get(written["node"])
    if node is None:
        raise ExportError(
            f"deserialize: containers of the class {written['node']!r} are not known here",
            instead="phlox.export.register_pytree_node_serialization in this process too, before",
            name=written["node"],
        )
    aux = node.deserialize(base64.b64decode(written["data"]))
    children = [_example(child) for child in written["children"]]
    if node.build is not None:
        return node.build(aux, children)
    structures = [pytree.tree_structure(child) for child in children]
    # Without a function of the user's, jaxlib makes the instance as it unflattens.
    tree = PyTreeDef.from_node_data_and_children(pytree.registry, (node.nodetype, aux), structures)
    return tree.unflatten([0] * tree.num_leaves)
