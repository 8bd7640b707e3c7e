"""Layers that modify the weights of an inner layer: weight normalization, and low-rank adaptation (LoRA)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

import phlox.numpy as jnp
from phlox import lax
from phlox.errors import ArgumentError
from phlox.extend import path_matcher
from phlox.nn import initializers

from . import _checks, _paths
from ._binding import Binding
from ._copies import Copies
from ._layer import Layer
from ._linear import Linear
from ._paths import Path, Pattern, Tree


def _weight_shape(layer: Any, name: str) -> tuple[int, ...]:
    """The shape of the inner layer's weight. Raises `ArgumentError` if it has no parameter of this name."""
    inner = layer.layer
    own = inner.parameters() if isinstance(inner, Layer) else {}
    if name not in own:
        raise ArgumentError(
            f"{type(layer).__name__}: the layer inside has no parameter {name!r}, but {sorted(own)}",
            instead="for example Linear or Conv",
            layer=inner,
        )
    return tuple(own[name][1])


class WeightNorm(Layer):
    """A layer whose weight is divided by its norm, for each feature of the output, and multiplied by a learnt scale.

    Source: Salimans and Kingma, 2016.

    Args:
      layer: the layer, for example `Linear` or `Conv`.
      name: which of its parameters.

    Parameters: scale (features of the output,), beside those of the part `layer`.

    >>> import phlox
    >>> import phlox_nn as nn
    >>> model = WeightNorm(nn.Linear(2, 3))
    >>> params = model.init(phlox.random.key(0))
    >>> model.apply(params, phlox.numpy.ones((5, 2))).shape, params["scale"].shape
    ((5, 3), (3,))
    """

    layer: Layer
    name: str = "weight"

    def parameters(self) -> Mapping[str, Any]:
        return {"scale": (initializers.ones, _weight_shape(self, self.name)[-1:])}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        weight = getattr(self.layer, self.name)
        wide = _checks.wide(weight)
        norm = jnp.sqrt(jnp.sum(jnp.square(wide), axis=tuple(range(wide.ndim - 1)), keepdims=True))
        changed = jnp.asarray(wide / norm * self.scale, weight.dtype)
        return self.layer.with_arrays(**{self.name: changed})(*args, **kwargs)


class SpectralNorm(Layer):
    """A layer whose weight is divided by its largest singular value. Source: Miyato et al., 2018.

    The value is estimated by power iteration: each step of training continues from the vectors of the last one.

    Args:
      layer: the layer, for example `Linear` or `Conv`, whose weight counts as a matrix with a column for each feature
        of the output.
      name: the name of the parameter.
      steps: the number of steps of power iteration in each step of training.
      epsilon: added to norms.

    Variables: u (features of the output,) and sigma (), the estimate, beside those of the part `layer`.

    >>> import phlox
    >>> import phlox_nn as nn
    >>> model = SpectralNorm(nn.Linear(2, 3))
    >>> params, state = model.init(phlox.random.key(0)), model.init_state()
    >>> y, state = model.apply(params, phlox.numpy.ones((5, 2)), state=state, train=True)
    >>> y.shape, state["sigma"].shape
    ((5, 3), ())
    """

    layer: Layer
    name: str = "weight"
    steps: int = 1
    epsilon: float = 1e-12

    def __post_init__(self) -> None:
        _checks.size(self, steps=self.steps)

    def variables(self) -> Mapping[str, Any]:
        columns = _weight_shape(self, self.name)[-1]
        unit = initializers.constant(1 / math.sqrt(columns))
        return {"u": (unit, (columns,), jnp.float32), "sigma": (initializers.ones, (), jnp.float32)}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        weight = getattr(self.layer, self.name)
        sigma = self.sigma
        if self.train:
            matrix = _checks.wide(weight).reshape(-1, weight.shape[-1])
            u, still = self.u, lax.stop_gradient(matrix)
            for _ in range(self.steps):
                v = self._unit(still @ u)
                u = self._unit(v @ still)
            sigma = v @ matrix @ u
            self.update(u=u, sigma=lax.stop_gradient(sigma))
        changed = jnp.asarray(_checks.wide(weight) / sigma, weight.dtype)
        return self.layer.with_arrays(**{self.name: changed})(*args, **kwargs)

    def _unit(self, x: Any) -> Any:
        return x / (jnp.linalg.norm(x) + self.epsilon)


class _LowRank(Layer):
    """The layer with the two thin matrices of a low-rank change, one pair for each copy in a `Stack`."""

    copies: tuple[int, ...]
    in_features: int
    out_features: int
    rank: int

    def parameters(self) -> Mapping[str, Any]:
        batch = tuple(range(len(self.copies)))
        return {
            "a": (initializers.lecun_normal(batch_axis=batch), (*self.copies, self.in_features, self.rank)),
            "b": (initializers.zeros, (*self.copies, self.rank, self.out_features)),
        }


class _Adapted(Linear):
    """A bound `Linear` with the matrices `a` and `b` of a low-rank change, and its `factor`."""

    def __call__(self, x: Any) -> Any:
        y = super().__call__(x)
        (x,) = self.cast(x)
        return y + jnp.matmul(jnp.matmul(x, self.a), self.b) * self.factor


class LoRA(Layer):
    """A model whose weights are changed by products of two thin matrices: ``x @ (weight + scale * a @ b)``.

    Initially `b` is zero, so the model computes the same as without changes. Source: Hu et al., 2021.

    Args:
      layer: a `Linear`, or any model with some inside.
      rank: the number of columns of `a` and rows of `b`.
      alpha: the changes are multiplied by ``alpha / rank``; by default by 1.
      pattern: selects layers by their path in the model: a glob such as ``"*/query"``, several, or a function.
      kinds: the classes of layers that are changed, among those that the pattern selects. The ``weight`` of any of them
        is taken as a matrix with a column for each feature of the output: also kernels of `Conv`, tables of
        `Embedding`, and layers in a `Stack`, which have a pair of matrices for each block.

    Its part is `layer`, with the parameters of the unchanged model. The matrices are in ``adapters``, by the path of
    the linear layer, so that ``partition(params, "adapters")`` separates them from the others. `merged` returns the
    model's parameters with the changes added.

    >>> import phlox
    >>> import phlox_nn as nn
    >>> model = LoRA(nn.MultiHeadAttention(8, 2), rank=2, pattern=("query", "value"))
    >>> params = model.init(phlox.random.key(0))
    >>> sorted(params["adapters"]), params["adapters"]["query"]["a"].shape
    (['query', 'value'], (8, 2))
    >>> learnt, frozen = nn.partition(params, "adapters")
    """

    layer: Layer
    rank: int
    alpha: float | None = None
    pattern: Pattern = "*"
    kinds: tuple[type[Layer], ...] = (Linear,)

    def __post_init__(self) -> None:
        _checks.size(self, rank=self.rank)
        if not isinstance(self.kinds, tuple) or not all(isinstance(kind, type) for kind in self.kinds):
            raise ArgumentError(
                f"LoRA: kinds are classes of layers, got {self.kinds!r}",
                instead="(nn.Linear, nn.Conv)",
                kinds=self.kinds,
            )

    @property
    def _factor(self) -> float:
        return 1.0 if self.alpha is None else self.alpha / self.rank

    def parts(self) -> Mapping[str, Any]:
        meant = path_matcher(self.pattern)
        targets = [target for target in _weights(self.layer, self.kinds) if meant(_paths.text(target.path))]
        if not targets:
            paths = [_paths.text(target.path) for target in _weights(self.layer, self.kinds)]
            raise ArgumentError(
                f"LoRA: no layer of {', '.join(kind.__name__ for kind in self.kinds)} is meant by the pattern "
                f"{self.pattern!r}",
                instead="a path as phlox_nn.summary shows them: " + ", ".join(map(repr, paths[:8]))
                if paths
                else "kinds=(nn.Conv, nn.Embedding)",
                pattern=self.pattern,
            )
        adapters = {
            target.path: _LowRank(target.copies, math.prod(target.shape[:-1]), target.shape[-1], self.rank)
            for target in targets
        }
        return {"adapters": adapters[()] if () in adapters else _paths.nested(adapters)}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.layer(*args, **kwargs)

    def decode(self, x: Any) -> Any:
        """Calls the method `decode` of the inner model."""
        return self.layer.decode(x)

    def merged(self, params: Tree) -> Tree:
        """The parameters of the inner model, with the changes added to its weights.

        >>> import phlox
        >>> import phlox_nn as nn
        >>> model = LoRA(nn.Linear(4, 4), rank=2)
        >>> params = model.init(phlox.random.key(0))
        >>> sorted(model.merged(params))
        ['bias', 'weight']
        """
        items = dict(_paths.leaves(params["layer"]))
        self._add(items, _pairs(params["adapters"]))
        return _paths.nested(items)

    def _add(self, items: dict[Path, Any], pairs: Mapping[Path, Tree]) -> None:
        """Adds the changes to the weights among the arrays by path."""
        for path, pair in pairs.items():
            weight = items[(*path, "weight")]
            change = (jnp.matmul(pair["a"], pair["b"]) * self._factor).reshape(weight.shape)
            items[(*path, "weight")] = weight + jnp.asarray(change, weight.dtype)

    def _bound(self, params: Any, state: Any, binding: Binding, path: Path) -> Any:
        outer, pairs = binding.adapt, {}
        adapters = _pairs(_paths.get(params, ("adapters",)))
        # Two thin products are less work than a changed weight; they need a linear layer that is bound here.
        thin = {target.path for target in _weights(self.layer, (Linear,)) if not target.copies}
        others = {below: pair for below, pair in adapters.items() if below not in thin}
        if others and isinstance(_paths.get(params, ("layer",)), Mapping):
            items = dict(_paths.leaves(params["layer"]))
            if all((*below, "weight") in items for below in others):  # else super()._bound says what is missing
                self._add(items, others)
                params = {**params, "layer": _paths.nested(items)}
        for below, pair in adapters.items():
            if below in others:
                continue
            cast = pair if binding.dtype is None else {name: jnp.asarray(x, binding.dtype) for name, x in pair.items()}
            pairs[(*path, "layer", *below)] = cast

        def adapt(at: Path, bound: Any) -> Any:
            if at in pairs:
                changed = object.__new__(_Adapted)
                changed.__dict__.update(bound.__dict__, factor=self._factor, **pairs[at])
                bound = changed
            return bound if outer is None else outer(at, bound)

        binding.adapt = adapt
        try:
            return super()._bound(params, state, binding, path)
        finally:
            binding.adapt = outer


@dataclasses.dataclass(frozen=True)
class _Weight:
    """A layer with a weight: its path, the shape of the weight, and the axes that a `Stack` puts before."""

    path: Path
    shape: tuple[int, ...]
    copies: tuple[int, ...]


def _weights(
    layer: Layer, kinds: tuple[type[Layer], ...], path: Path = (), copies: tuple[int, ...] = ()
) -> Iterator[_Weight]:
    """The layers of these kinds in a model that have a weight of two axes or more."""
    own = layer.parameters() if isinstance(layer, kinds) else {}
    if "weight" in own and len(own["weight"][1]) > 1:
        yield _Weight(path, tuple(own["weight"][1]), copies)
    for below, part in layer._plan().parts:
        inner = (*copies, *layer._copies) if isinstance(layer, Copies) and below == (layer._copied,) else copies
        yield from _weights(part, kinds, (*path, *below), inner)


def _pairs(adapters: Tree) -> dict[Path, Tree]:
    """The matrices ``{"a": …, "b": …}`` by the path of the linear layer that they change."""
    pairs: dict[Path, Tree] = {}
    for path, value in _paths.leaves(adapters):
        pairs.setdefault(path[:-1], {})[path[-1]] = value
    return pairs
