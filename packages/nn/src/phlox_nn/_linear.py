"""Linear, Embedding, and the multilayer perceptron MLP."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import phlox
import phlox.numpy as jnp
from phlox.errors import ArgumentError, DtypeError
from phlox.extend import lenient_promotion
from phlox.nn import initializers

from . import _activations, _checks
from ._dropout import Dropout
from ._layer import Layer
from ._torch_layout import TRANSPOSED, Tensor, tensor


class Linear(Layer):
    """The affine map ``x @ weight + bias``.

    Maps (..., in_features) to (..., out_features).

    Args:
      in_features, out_features: lengths of the last axis before and after.
      use_bias: whether something is added.
      weight_init, bias_init: initializers.

    Parameters: weight (in_features, out_features), bias (out_features,).

    >>> import phlox
    >>> layer = Linear(2, 3)
    >>> layer.apply(layer.init(phlox.random.key(0)), phlox.numpy.ones((5, 2))).shape
    (5, 3)
    """

    in_features: int
    out_features: int
    use_bias: bool = True
    weight_init: initializers.Initializer = initializers.lecun_normal()
    bias_init: initializers.Initializer = initializers.zeros

    def __post_init__(self) -> None:
        _checks.size(self, in_features=self.in_features, out_features=self.out_features)

    def parameters(self) -> Mapping[str, Any]:
        weight = {"weight": (self.weight_init, (self.in_features, self.out_features))}
        return weight | ({"bias": (self.bias_init, (self.out_features,))} if self.use_bias else {})

    def torch_layout(self) -> Sequence[Tensor]:
        return [tensor(name, name, layout=TRANSPOSED) for name in self.parameters()]

    def __call__(self, x: Any) -> Any:
        _checks.features(self, x, self.in_features)
        y = self._product(*self.cast(x))
        return y + self.bias if self.use_bias else y

    def _product(self, x: Any) -> Any:
        return jnp.matmul(x, self.weight)


class Embedding(Layer):
    """A table with a vector for each of a number of tokens.

    Maps integers of shape (...) to vectors (..., features). Numbers outside of the table give nan.

    Args:
      num_embeddings: how many vectors there are.
      features: their length.
      weight_init: an initializer.

    Parameters: weight (num_embeddings, features).

    >>> import phlox
    >>> layer = Embedding(10, 4)
    >>> params = layer.init(phlox.random.key(0))
    >>> vectors = layer.apply(params, phlox.numpy.array([[1, 2, 3]]))
    >>> vectors.shape, layer.apply(params, vectors, method="attend").shape
    ((1, 3, 4), (1, 3, 10))
    """

    num_embeddings: int
    features: int
    weight_init: initializers.Initializer = initializers.normal(1.0)

    def __post_init__(self) -> None:
        _checks.size(self, num_embeddings=self.num_embeddings, features=self.features)

    def parameters(self) -> Mapping[str, Any]:
        return {"weight": (self.weight_init, (self.num_embeddings, self.features))}

    def __call__(self, tokens: Any) -> Any:
        if not jnp.issubdtype(jnp.result_type(tokens), jnp.integer):
            raise DtypeError(
                f"{self._name()}: tokens are integers, got {phlox.typeof(tokens).short}",
                instead="x.astype(int)",
                layer=self.path,
            )
        return self._rows(tokens)

    def _rows(self, tokens: Any) -> Any:
        return jnp.take(self.weight, tokens, axis=0)

    @lenient_promotion()
    def attend(self, x: Any) -> Any:
        """Products of `x` (..., features) with each vector, (..., num_embeddings): logits of tokens, if input and
        output embeddings are tied.
        """
        _checks.features(self, x, self.features)
        return self._products(*self.cast(x))

    def _products(self, x: Any) -> Any:
        return jnp.matmul(x, self.weight.T)


class MLP(Layer):
    """A multilayer perceptron: linear layers with an activation between them.

    Args:
      features: lengths of the last axis: of the inputs, of what is between, of the outputs.
      activation: the function between the layers.
      use_bias: whether the layers add something.
      dropout: the part of the activations that is dropped in training.

    Its parts are the `layers`, so parameters are called ``layers.0.weight`` and so on.

    >>> import phlox
    >>> model = MLP((8, 16, 8))
    >>> model.apply(model.init(phlox.random.key(0)), phlox.numpy.ones((5, 8))).shape
    (5, 8)
    """

    features: tuple[int, ...]
    activation: Callable[[Any], Any] = _activations.gelu
    use_bias: bool = True
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.features, tuple) or len(self.features) < 2:
            raise ArgumentError(
                f"MLP: features must be a tuple of two lengths or more, got {self.features!r}",
                instead="for example (8, 16, 8)",
            )

    def parts(self) -> Mapping[str, Any]:
        pairs = zip(self.features, self.features[1:], strict=False)
        return {"layers": [Linear(a, b, self.use_bias) for a, b in pairs], "dropping": Dropout(self.dropout)}

    def __call__(self, x: Any) -> Any:
        *hidden, last = self.layers
        for layer in hidden:
            x = self.dropping(self.activation(layer(x)))
        return last(x)
