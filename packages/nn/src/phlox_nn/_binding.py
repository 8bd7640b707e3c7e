"""Calls of bound layers: the data that the copies of one call share, checks of its arrays, and errors with paths."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import phlox
import phlox.numpy as jnp
from phlox.errors import ArgumentError, PhloxError, TreeError
from phlox.extend import lenient_promotion

from . import _paths
from ._paths import Path

if TYPE_CHECKING:
    from ._layer import Layer

_PACKAGE = __name__.split(".")[0] + "."


@dataclasses.dataclass(eq=False)
class Binding:
    """The data that all bound copies of one call share."""

    key: Any = None
    train: bool = False
    dtype: Any = None
    #: whether variables are given, so that they may be read and changed
    stateful: bool = False
    #: changed variables by path
    changes: dict[Path, Any] = dataclasses.field(default_factory=dict)
    #: how many keys were drawn at each path
    draws: dict[Path, int] = dataclasses.field(default_factory=dict)
    #: called with (path, layer, arguments, result) after each call of a layer, for `summary`
    watch: Callable[[Path, Layer, Any, Any], None] | None = None
    #: returns the replacement of the bound layer at a path, for layers that modify inner layers
    adapt: Callable[[Path, Any], Any] | None = None
    #: the bound layers whose calls are running, innermost last
    running: list[Layer] = dataclasses.field(default_factory=list)


def watch_calls(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps ``__call__`` so that operations have the layer's name in profiles, and errors have its path."""

    ours = (method.__module__ or "").startswith(_PACKAGE)

    @functools.wraps(method)
    def __call__(self: Layer, *args: Any, **kwargs: Any) -> Any:
        binding = self._bound_by
        if binding.running and binding.running[-1] is self:  # super().__call__() of a subclass
            return method(self, *args, **kwargs)
        with _running(self, binding), lenient_promotion(ours):
            try:
                out = method(self, *args, **kwargs)
            except TypeError as error:
                if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                    raise  # raised inside of the method, not by the call
                raise arguments_error(self, "__call__", error) from None
        if binding.watch is not None:
            binding.watch(self._path, self, (args, kwargs), out)
        return out

    return __call__


@contextlib.contextmanager
def _running(layer: Layer, binding: Binding) -> Iterator[None]:
    path: Path = layer._path
    binding.running.append(layer)
    try:
        with phlox.named_scope(path[-1] if path else type(layer).__name__):
            yield
    except PhloxError as error:
        if path and not hasattr(error, "layer"):
            error.layer = _paths.text(path)  # type: ignore[attr-defined]
            error.add_note(f"  in layer: {layer._name()}")
        raise
    finally:
        binding.running.pop()


def arguments_error(layer: Layer, method: str, error: TypeError) -> ArgumentError:
    """The error for arguments that a method does not take."""
    return ArgumentError(
        f"{layer._name()}: {error}",
        instead=f"{method}{inspect.signature(getattr(layer, method))}; apply itself takes state, key, train, dtype",
        layer=layer.path,
    )


def check_names(layer: Layer, tree: Any, path: Path, kind: str) -> None:
    """Raises `TreeError` unless `tree` has the names of this layer's arrays and parts of one kind."""
    where = f"of {_paths.text(path)} " if path else ""
    maker = "init" if kind == "parameters" else "init_state"
    if not isinstance(tree, Mapping):
        raise TreeError(
            f"the {kind} {where}must be a dict, got a {type(tree).__name__}",
            instead=f"what model.{maker} returns",
            path=path,
            expected="dict",
            got=tree,
        )
    plan = layer._plan()
    own = getattr(plan, kind)
    missing = [name for name in own if name not in tree]
    whole = {*((name,) for name in own), *(below for below, _ in plan.parts)}
    known = {below[:n] for below in whole for n in range(1, len(below) + 1)}
    unknown = [_paths.text(below) for below in _unknown(tree, (), whole, known)]
    if missing or unknown:
        parts = [f"lack {missing}" if missing else "", f"have {unknown}, which it does not know" if unknown else ""]
        raise TreeError(
            f"the {kind} {where}do not fit {short_code(layer)}: they {' and '.join(filter(None, parts))}",
            instead=f"what model.{maker} returns; phlox_nn.summary shows the names",
            path=path,
            expected=sorted(map(_paths.text, whole)),
            got=sorted(map(str, tree)),
        )


def _unknown(tree: Mapping[str, Any], path: Path, whole: set[Path], known: set[Path]) -> Iterator[Path]:
    """The paths in nested dicts that neither are among `whole`, nor lead to one; `known` has both kinds."""
    for name, value in tree.items():
        below = (*path, str(name))
        if below not in known:
            yield below
        elif below not in whole and isinstance(value, Mapping):
            yield from _unknown(value, below, whole, known)


def short_code(layer: Layer) -> str:
    """The code of a layer, truncated if it is long."""
    lines = repr(layer).splitlines()
    return lines[0] if len(lines) == 1 else f"{type(layer).__name__}(...)"


def convert(x: Any, dtype: Any) -> Any:
    """A floating-point array converted to this dtype; everything else unchanged."""
    return jnp.asarray(x, dtype) if hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.floating) else x


def path_key(key: Any, path: Path) -> Any:
    """The key for the array or layer at `path`."""
    return phlox.random.fold_in(key, zlib.crc32("/".join(path).encode()))
