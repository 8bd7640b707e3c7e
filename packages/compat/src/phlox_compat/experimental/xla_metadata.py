"""``jax.experimental.xla_metadata`` and ``scheduling_groups``: attributes of operations, for passes of the compiler.

A set of attributes has a number, which is a part of the name scope of its operations: ``jit(f)/xla_metadata.3/sin``.
When a program is lowered, the operations whose locations have such a name get the attributes.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

import phlox
from phlox.errors import ArgumentError
from phlox.extend import Function, Primitive, Value, Zero, publish

from .._core import InnerScope, mlir_context, mlir_module, parse_module, program, within

__all__ = [
    "fuse_limit",
    "must_fuse_call",
    "scheduling_group",
    "set_xla_metadata",
    "xla_metadata_call",
    "xla_metadata_call2",
]

Attributes = tuple[tuple[str, str], ...]
_MARK = re.compile(r"xla_metadata\.(\d+)")
_FRONTEND = "mhlo.frontend_attributes"
#: the attributes of the operations that are traced in this context: a part of the keys of caches
_context = phlox.make_user_context(())
#: attributes, and those of the operations of a backward pass -> their number
_numbers: dict[tuple[Attributes, Attributes], int] = {}


def _mark(attributes: Attributes, backward: Attributes | None = None) -> str:
    """The name of these attributes in name scopes."""
    program.annotate = _annotated
    key = attributes, attributes if backward is None else backward
    return f"xla_metadata.{_numbers.setdefault(key, len(_numbers))}"


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Metadata:
    """A context manager, and a decorator: the operations traced inside have the attributes. None removes one."""

    def __init__(self, changes: dict[str, Any]):
        self._changes = changes
        self._open: list[contextlib.ExitStack] = []

    def __enter__(self) -> None:
        merged = {**dict(_context.value), **{k: v if v is None else _text(v) for k, v in self._changes.items()}}
        attributes = tuple(sorted((k, v) for k, v in merged.items() if v is not None))
        stack = contextlib.ExitStack()
        stack.enter_context(_context(attributes))
        stack.enter_context(within(InnerScope(_mark(attributes))))
        self._open.append(stack)

    def __exit__(self, *_: object) -> None:
        self._open.pop().close()

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return _Inside(f, self)


class _Inside:
    """A function, and its methods such as ``lower``, in a context."""

    def __init__(self, f: Callable[..., Any], context: _Metadata):
        functools.update_wrapper(self, f, updated=())  # attributes of `f` are those of `__getattr__`
        self._context = context

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self._context:
            return self.__wrapped__(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        member = getattr(self.__dict__["__wrapped__"], name)
        return self._context(member) if callable(member) else member


def set_xla_metadata(x: Any = None, **attributes: Any) -> Any:
    """Gives attributes to operations: to those that compute the arrays of `x`, or to those in a ``with`` block.

    Args:
      x: a tree of arrays; None makes a context manager, and decorator.
      **attributes: texts, bools and numbers, which become texts; in a context None removes an attribute.

    Returns:
      `x`, or the context manager.

    >>> with set_xla_metadata(group="a"):
    ...     text = phlox.jit(jnp.sin).lower(1.0).as_text()
    >>> 'mhlo.frontend_attributes = {group = "a"}' in text
    True
    """
    if x is None:
        return _Metadata(attributes)
    named = tuple(sorted((k, _text(v)) for k, v in attributes.items()))
    return phlox.tree.map(lambda leaf: _value.bind(leaf, mark=_mark(named)), x)


def _value_lower(f: Function, x: Value, mark: str) -> Any:
    # `_with_attributes` removes it again.
    return f.op("stablehlo.custom_call", [x], x.aval, f'call_target_name = "{mark}"')


def _value_jvp(primals: Any, tangents: Any, mark: str) -> Any:
    return [x if isinstance(x, Zero) else _value.bind(x, mark=mark) for x in (primals[0], tangents[0])]


_value: Primitive = Primitive(
    "xla_metadata_value",
    types=lambda x, mark: x,
    eager=lambda x, mark: x,
    lower=_value_lower,
    jvp=_value_jvp,
    transpose=lambda ct, x, mark: [ct],
    batch=lambda axis, args, dims, mark: (_value.bind(args[0], mark=mark), dims[0]),
)


def xla_metadata_call(f: Callable[..., Any] | None = None, /, **attributes: Any) -> Any:
    """`f` as a function of its own in the program, whose calls have these attributes.

    Args:
      f: function of arrays; None makes a decorator.
      **attributes: texts, bools and numbers, which become texts.

    Returns:
      A function like `f`, or the decorator.

    Raises:
      ArgumentError: an attribute is none of these.

    >>> xla_metadata_call(jnp.square, group="a")(3)
    Array(9, dtype=int32, weak_type=True)
    """
    return functools.partial(_call, attributes, "same") if f is None else _call(attributes, "same", f)


def xla_metadata_call2(f: Any = None, /, metadata: Any = None, *, ad_metadata: Any = "same") -> Any:
    """`xla_metadata_call` with a dict of attributes, and others for the calls in a backward pass.

    Args:
      f: function of arrays; None makes a decorator, also where the first argument is the dict.
      metadata: attributes by name.
      ad_metadata: attributes of calls in a backward pass; "same" as `metadata`, or "drop" for none.

    Returns:
      A function like `f`, or the decorator.

    Raises:
      ArgumentError: an argument is none of these.

    >>> xla_metadata_call2({"group": "a"}, ad_metadata="drop")(jnp.square)(3)
    Array(9, dtype=int32, weak_type=True)
    """
    if isinstance(f, Mapping) and metadata is None:
        f, metadata = None, f
    if not (f is None or callable(f)):
        raise ArgumentError(f"xla_metadata_call2: expected a callable to wrap, got {f!r}")
    if not (metadata is None or isinstance(metadata, Mapping)):
        raise ArgumentError(f"xla_metadata_call2: metadata must be a dict, got {metadata!r}")
    if f is None:
        return functools.partial(_call, metadata or {}, ad_metadata)
    return _call(metadata or {}, ad_metadata, f)


def _call(attributes: Mapping[str, Any], backward: Any, f: Callable[..., Any]) -> Callable[..., Any]:
    if not (backward in ("same", "drop") or isinstance(backward, Mapping)):
        raise ArgumentError(f"ad_metadata must be 'same', 'drop', or a dict of metadata, got {backward!r}")
    rest = {"same": attributes, "drop": {}}[backward] if isinstance(backward, str) else backward
    mark = _mark(_checked(attributes), _checked(rest))

    def xla_metadata_call(*args: Any, **kwargs: Any) -> Any:
        return f(*args, **kwargs)

    call = phlox.jit(xla_metadata_call)

    @functools.wraps(f)
    def run(*args: Any, **kwargs: Any) -> Any:
        with within(mark):
            return call(*args, **kwargs)

    return run


def _checked(attributes: Mapping[str, Any]) -> Attributes:
    for name, value in attributes.items():
        if not isinstance(value, str | bool | int | float):
            raise ArgumentError(f"xla_metadata_call: {name}={value!r}", instead="a str, bool, int or float")
    return tuple(sorted((k, _text(v)) for k, v in attributes.items()))


def must_fuse_call(identifier: str) -> Any:
    """Tells XLA to fuse the operations of a function, by the attribute ``MUST_FUSE``.

    Args:
      identifier: number of the fusion, as text.

    Returns:
      A decorator.

    >>> must_fuse_call("1")(jnp.square)(3)
    Array(9, dtype=int32, weak_type=True)
    """
    return xla_metadata_call(MUST_FUSE=identifier)


def fuse_limit() -> Any:
    """Tells XLA not to fuse operations with others, by the attribute ``FUSE_LIMIT``.

    Returns:
      A context manager.

    >>> with fuse_limit():
    ...     x = phlox.jit(jnp.square)(3)
    """
    return _Metadata({"FUSE_LIMIT": True})


def scheduling_group(name: str) -> Any:
    """Tells XLA to schedule the operations of a function together, by the attribute ``scheduling_group``.

    Args:
      name: name of the group.

    Returns:
      A decorator.

    >>> scheduling_group("layer")(jnp.square)(3)
    Array(9, dtype=int32, weak_type=True)
    """
    return xla_metadata_call(scheduling_group=name)


# --- lowering -------------------------------------------------------------------------------------------


def _annotated(write: Callable[..., tuple[str, Any]]) -> Callable[..., tuple[str, Any]]:
    """`write`, which writes the text of a program, with attributes of operations in the text."""

    def annotated(*, locations: bool = False, names: Any = ()) -> tuple[str, Any]:
        # Locations tell the name scopes of operations.
        text, module = write(locations=True, names=names)
        if _MARK.search(text):
            return _with_attributes(text, locations), module
        return (text, module) if locations else write()

    return annotated


def _with_attributes(text: str, locations: bool) -> str:
    ir, sets = mlir_module("ir"), list(_numbers)
    module = parse_module(text)
    operations: list[Any] = []
    with mlir_context():

        def visit(op: Any) -> Any:
            operations.append(op)
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)

        def add(op: Any, attributes: Attributes) -> None:
            known = op.attributes[_FRONTEND] if _FRONTEND in op.attributes else ()  # noqa: SIM401 (no `get` in jaxlib 0.10)
            merged = {name: ir.StringAttr.get(value) for name, value in attributes}
            op.attributes[_FRONTEND] = ir.DictAttr.get({**merged, **{item.name: item.attr for item in known}})

        for op in operations:
            location = str(op.location)
            marks = _MARK.findall(location)
            if marks and not op.name.endswith((".constant", ".return")):
                forward, backward = sets[int(marks[-1])]
                # Without attributes, such as where None removes the last one
                if attributes := backward if "transpose(" in location else forward:
                    add(op, attributes)
        for op in operations:
            if op.name == "stablehlo.custom_call":
                target = _MARK.fullmatch(ir.StringAttr(op.attributes["call_target_name"]).value)
                if target is not None:
                    (x,) = op.operands
                    if isinstance(x.owner, ir.Operation | ir.OpView):  # an argument is computed by no operation
                        add(x.owner, sets[int(target[1])][0])
                    op.results[0].replace_all_uses_with(x)
                    op.erase()
        return str(module.operation.get_asm(enable_debug_info=locations))


publish(__name__)
