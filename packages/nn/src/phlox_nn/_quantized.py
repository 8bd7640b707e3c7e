"""`Quantized`: a model whose matrices are stored in 8 bits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import phlox.numpy as jnp
from phlox.errors import ArgumentError, DtypeError
from phlox.extend import path_matcher
from phlox.nn import initializers

from . import _paths
from ._binding import Binding
from ._layer import Layer
from ._linear import Embedding, Linear
from ._paths import Path, Pattern, Tree
from ._stack import Stack


class _Scale(Layer):
    """The factors of the columns of a matrix, or of the rows of a table."""

    size: int

    def parameters(self) -> Mapping[str, Any]:
        return {"scale": (initializers.ones, (self.size,))}


class _QuantizedLinear(Linear):
    """A bound `Linear` with an int8 weight and the `scale` of its columns."""

    def _product(self, x: Any) -> Any:
        # The factor comes after the product: it belongs to a column, and products of 8 bits are exact in floats.
        return jnp.matmul(x, self.weight.astype(x.dtype)) * self.scale.astype(x.dtype)


class _QuantizedEmbedding(Embedding):
    """A bound `Embedding` with an int8 weight and the `scale` of its rows."""

    def _rows(self, tokens: Any) -> Any:
        return jnp.take(self.weight, tokens, axis=0).astype(self.scale.dtype) * jnp.take(self.scale, tokens)[..., None]

    def _products(self, x: Any) -> Any:
        return jnp.matmul(x, self.weight.T.astype(x.dtype)) * self.scale.astype(x.dtype)


class Quantized(Layer):
    """A model whose linear maps and embeddings have weights of 8 bits, with a factor for each column or row.

    For inference: weights take a quarter of the memory of float32, and their rounding errors are at most 1/254 of the
    largest number of a column. Attributes and methods of the inner model are those of this layer too.

    Args:
      layer: a model.
      pattern: selects its linear maps and embeddings by dotted path: a glob, several, or a function.

    Its part is `layer`, with int8 weights; the factors are in ``scales``, by path. `quantize` makes these parameters.

    >>> import phlox
    >>> import phlox_nn as nn
    >>> model = nn.Linear(4, 3)
    >>> small = Quantized(model)
    >>> params = small.quantize(model.init(phlox.random.key(0)))
    >>> params["layer"]["weight"].dtype, params["scales"]["scale"].shape
    (dtype('int8'), (3,))
    >>> small.apply(params, phlox.numpy.ones((5, 4))).shape
    (5, 3)
    """

    layer: Layer
    pattern: Pattern = "*"

    def parts(self) -> Mapping[str, Any]:
        scales = {path: _Scale(size) for path, size, _ in self._matrices()}
        if not scales:
            raise ArgumentError(
                f"Quantized: no linear map and no embedding is meant by the pattern {self.pattern!r}",
                instead="a pattern of paths as phlox_nn.summary shows them; Quantized inside of a Stack, not around it",
                pattern=self.pattern,
            )
        return {"scales": scales[()] if () in scales else _paths.nested(scales)}

    def _matrices(self) -> Iterator[tuple[Path, int, int]]:
        """(path, number of factors, axis that they do not have) of each layer whose weight is quantized."""
        meant = path_matcher(self.pattern)
        for path, layer in _matrix_layers(self.layer, ()):
            if meant(_paths.text(path)):
                is_linear = isinstance(layer, Linear)
                yield path, layer.out_features if is_linear else layer.num_embeddings, 0 if is_linear else 1

    def quantize(self, params: Tree) -> Tree:
        """The parameters of this layer, for floating-point parameters of the inner model."""
        items, scales = dict(_paths.leaves(params)), {}
        for path, _, axis in self._matrices():
            weight = items[(*path, "weight")]
            if not jnp.issubdtype(weight.dtype, jnp.floating):
                raise DtypeError(
                    f"Quantized: the weight of {_paths.text(path)!r} is {weight.dtype}",
                    instead="floating-point weights",
                )
            wide = weight.astype(jnp.float32)
            scale = jnp.max(jnp.abs(wide), axis=axis) / 127
            steps = wide / jnp.expand_dims(jnp.where(scale == 0, 1, scale), axis)
            items[(*path, "weight")] = jnp.round(steps).astype(jnp.int8)
            scales[(*path, "scale")] = scale.astype(weight.dtype)
        return {"layer": _paths.nested(items), "scales": _paths.nested(scales)}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.layer(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        inner = self.__dict__.get("layer")
        if inner is not None and not name.startswith("_") and hasattr(inner, name):
            return getattr(inner, name)
        return super().__getattr__(name)

    def _make(self, kind: str, key: Any, path: Path, dtype: Any, batch: int | None) -> Tree:
        arrays = super()._make(kind, key, path, dtype, batch)
        return self.quantize(arrays["layer"]) if kind == "parameters" else arrays

    def _bound(self, params: Any, state: Any, binding: Binding, path: Path) -> Any:
        outer = binding.adapt
        scales = {
            (*path, "layer", *below[:-1]): scale if binding.dtype is None else scale.astype(binding.dtype)
            for below, scale in _paths.leaves(_paths.get(params, ("scales",)))
        }

        def adapt(at: Path, bound: Any) -> Any:
            if at in scales:
                changed = object.__new__(_QuantizedLinear if isinstance(bound, Linear) else _QuantizedEmbedding)
                changed.__dict__.update(bound.__dict__, scale=scales[at])
                bound = changed
            return bound if outer is None else outer(at, bound)

        binding.adapt = adapt
        try:
            return super()._bound(params, state, binding, path)
        finally:
            binding.adapt = outer


def _matrix_layers(layer: Layer, path: Path) -> Iterator[tuple[Path, Any]]:
    """(path, layer) of each `Linear` and `Embedding` in a model, except those in a `Stack`, which its loop binds."""
    if isinstance(layer, Linear | Embedding):
        yield path, layer
    elif not isinstance(layer, Stack):
        for below, part in layer._plan().parts:
            yield from _matrix_layers(part, (*path, *below))
