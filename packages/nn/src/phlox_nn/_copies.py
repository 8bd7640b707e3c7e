"""The base of layers that hold many copies of one layer, whose arrays lie along a new first axis."""

from __future__ import annotations

from typing import Any, ClassVar

import phlox
import phlox.numpy as jnp
from phlox.errors import ShapeError

from . import _paths
from ._binding import Binding, path_key
from ._layer import Layer
from ._paths import Path, Tree


class Copies(Layer):
    """Holds a layer with `_count` copies of its arrays. The layer is bound in the call, to the arrays of one copy."""

    #: the name of the field with the layer
    _copied: ClassVar[str]

    @property
    def _count(self) -> int:
        raise NotImplementedError

    @property
    def _copies(self) -> tuple[int, ...]:
        return (self._count,)

    def _copy_call(self, method: str, arrays: tuple[Any, Any], key: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """The result and the new state of one copy, whose parameters and state are `arrays`."""
        outer, path = self._bound_by, (*self._path, self._copied)
        inner = Binding(key, outer.train, outer.dtype, outer.stateful, watch=outer.watch, running=outer.running)
        layer = getattr(self, self._copied)._bound(*arrays, inner, path)
        return getattr(layer, method)(*args, **kwargs), layer.updated_state()

    def _copy_keys(self) -> Any:
        """A key for each copy; None if the call has none."""
        return None if self._bound_by.key is None else phlox.random.split(self.random_key(), self._count)

    def _set_states(self, states: Tree) -> None:
        """Makes these states of all copies part of the new state of the model."""
        binding, path = self._bound_by, (*self._path, self._copied)
        if binding.stateful:
            binding.changes.update({(*path, *below): value for below, value in _paths.leaves(states)})

    def _make_part(self, part: Layer, below: Path, kind: str, key: Any, path: Path, dtype: Any, batch: Any) -> Tree:
        if below != (self._copied,):
            return super()._make_part(part, below, kind, key, path, dtype, batch)
        keys = phlox.random.split(path_key(key, (*path, *below)), self._count)
        arrays: Tree = phlox.vmap(lambda key: part._make(kind, key, (), dtype, batch))(keys)
        return arrays

    def _bound(self, params: Any, state: Any, binding: Binding, path: Path) -> Any:
        bound = super()._bound(params, state, binding, path)
        bound.__dict__["_arrays"] = tuple(_paths.get(tree, (self._copied,)) for tree in (params, state))
        return bound

    def _bind_part(self, part: Layer, below: Path, params: Any, state: Any, binding: Binding, path: Path) -> Any:
        if below != (self._copied,):
            return super()._bind_part(part, below, params, state, binding, path)
        for tree in (params, state):
            for inner, leaf in _paths.leaves(_paths.get(tree, below)):
                if jnp.shape(leaf)[:1] != (self._count,):
                    whole = (*path, *below, *inner)
                    raise ShapeError(
                        f"{_paths.text(whole)!r} has shape {jnp.shape(leaf)}, but a {type(self).__name__} of "
                        f"{self._count} needs a first axis of length {self._count}",
                        shapes=[jnp.shape(leaf)],
                        path=whole,
                    )
        return part
