"""Recurrent layers: a cell applied to each position of a sequence by `phlox.lax.scan`.

The products with the inputs are one matrix product for all positions; only the rest is computed in the loop. Order of
gates and names of parameters are PyTorch's; matrices are transposed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import phlox
import phlox.numpy as jnp
from phlox import lax
from phlox.errors import ArgumentError, ShapeError
from phlox.nn import initializers

from . import _checks
from ._layer import Layer
from ._torch_layout import TRANSPOSED, Tensor, tensor


def _gates(count: int) -> initializers.Initializer:
    """An initializer of `count` orthogonal matrices, one for each gate, side by side."""
    one = initializers.orthogonal()

    def init(key: Any, shape: Any, dtype: Any = jnp.float32) -> Any:
        keys = phlox.random.split(key, count)
        return jnp.concatenate([one(k, (shape[0], shape[1] // count), dtype) for k in keys], axis=1)

    return init


class _Cell(Layer):
    """One step of a recurrent layer: ``cell(carry, x) -> (carry, y)``."""

    in_features: int
    hidden_features: int
    use_bias: bool = True

    _gate_count = 1

    def __post_init__(self) -> None:
        _checks.size(self, in_features=self.in_features, hidden_features=self.hidden_features)

    def parameters(self) -> Mapping[str, Any]:
        width = self._gate_count * self.hidden_features
        weights = {
            "weight_ih": (initializers.glorot_uniform(), (self.in_features, width)),
            "weight_hh": (_gates(self._gate_count), (self.hidden_features, width)),
        }
        zeros = (initializers.zeros, (width,))
        return weights | ({"bias_ih": zeros, "bias_hh": zeros} if self.use_bias else {})

    def torch_layout(self) -> Sequence[Tensor]:
        return [tensor(name, name, layout=TRANSPOSED) for name in self.parameters()]

    def initial_carry(self, lead: tuple[int, ...], dtype: Any = jnp.float32) -> Any:
        """The carry of the first step: zeros of shape (*lead, hidden_features)."""
        return jnp.zeros((*lead, self.hidden_features), dtype)

    def project(self, x: Any) -> Any:
        """The part of the gates that depends on the inputs (..., in_features), for all positions at once."""
        _checks.features(self, x, self.in_features)
        (x,) = self.cast(x)
        y = jnp.matmul(x, self.weight_ih)
        return y + self.bias_ih if self.use_bias else y

    def recur(self, h: Any) -> Any:
        """The part of the gates that depends on the previous hidden values."""
        y = jnp.matmul(h, self.weight_hh)
        return y + self.bias_hh if self.use_bias else y

    def step(self, carry: Any, projected: Any) -> tuple[Any, Any]:
        """The next carry and the output, from the carry and the result of `project`."""
        raise NotImplementedError

    def __call__(self, carry: Any, x: Any) -> tuple[Any, Any]:
        return self.step(carry, self.project(x))


class RNNCell(_Cell):
    """The step ``h = tanh(x @ weight_ih + bias_ih + h @ weight_hh + bias_hh)``.

    Args:
      in_features, hidden_features: lengths of the last axis of inputs and hidden values.
      use_bias: whether something is added.

    Parameters: weight_ih (in_features, hidden_features), weight_hh (hidden_features, hidden_features), bias_ih and
    bias_hh (hidden_features,).

    >>> import phlox
    >>> cell = RNNCell(2, 3)
    >>> carry, y = cell.apply(cell.init(phlox.random.key(0)), cell.initial_carry((5,)), phlox.numpy.ones((5, 2)))
    >>> y.shape
    (5, 3)
    """

    def step(self, carry: Any, projected: Any) -> tuple[Any, Any]:
        h = jnp.tanh(projected + self.recur(carry))
        return h, h


class LSTMCell(_Cell):
    """A step of long short-term memory; the carry is (hidden values, memory). Source: Hochreiter, Schmidhuber, 1997.

    Args:
      in_features, hidden_features: lengths of the last axis of inputs and hidden values.
      use_bias: whether something is added.

    Parameters: those of `RNNCell` for four gates side by side: input, forget, cell, output.

    >>> import phlox
    >>> cell = LSTMCell(2, 3)
    >>> (h, c), y = cell.apply(cell.init(phlox.random.key(0)), cell.initial_carry((5,)), phlox.numpy.ones((5, 2)))
    >>> h.shape, c.shape, y.shape
    ((5, 3), (5, 3), (5, 3))
    """

    _gate_count = 4

    def initial_carry(self, lead: tuple[int, ...], dtype: Any = jnp.float32) -> Any:
        zeros = super().initial_carry(lead, dtype)
        return zeros, zeros

    def step(self, carry: Any, projected: Any) -> tuple[Any, Any]:
        h, c = carry
        i, f, g, o = jnp.split(projected + self.recur(h), 4, axis=-1)
        c = phlox.nn.sigmoid(f) * c + phlox.nn.sigmoid(i) * jnp.tanh(g)
        h = phlox.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h


class GRUCell(_Cell):
    """A step of a gated recurrent unit. Source: Cho et al., 2014, in the form of PyTorch and cuDNN.

    Args:
      in_features, hidden_features: lengths of the last axis of inputs and hidden values.
      use_bias: whether something is added.

    Parameters: those of `RNNCell` for three gates side by side: reset, update, new.

    >>> import phlox
    >>> cell = GRUCell(2, 3)
    >>> carry, y = cell.apply(cell.init(phlox.random.key(0)), cell.initial_carry((5,)), phlox.numpy.ones((5, 2)))
    >>> y.shape
    (5, 3)
    """

    _gate_count = 3

    def step(self, carry: Any, projected: Any) -> tuple[Any, Any]:
        xr, xz, xn = jnp.split(projected, 3, axis=-1)
        hr, hz, hn = jnp.split(self.recur(carry), 3, axis=-1)
        reset, update = phlox.nn.sigmoid(xr + hr), phlox.nn.sigmoid(xz + hz)
        h = (1 - update) * jnp.tanh(xn + reset * hn) + update * carry
        return h, h


class _Recurrent(Layer):
    """A cell applied to all positions of a sequence."""

    in_features: int
    hidden_features: int
    bidirectional: bool = False
    reverse: bool = False
    use_bias: bool = True

    _cell = _Cell

    def __post_init__(self) -> None:
        _checks.size(self, in_features=self.in_features, hidden_features=self.hidden_features)
        if self.bidirectional and self.reverse:
            raise ArgumentError(
                f"{type(self).__name__}: bidirectional=True runs both ways, and reverse=True only from the end",
                instead="one of them",
                argument="reverse",
            )

    def parts(self) -> Mapping[str, Any]:
        cell = self._cell(self.in_features, self.hidden_features, self.use_bias)
        return {"cell": cell} | ({"cell_reverse": cell} if self.bidirectional else {})

    def torch_layout(self) -> Sequence[Tensor]:
        ends = {"cell": "_l0", "cell_reverse": "_l0_reverse"}
        return [
            tensor(f"{name}{ends[part]}", f"{part}.{name}", layout=TRANSPOSED)
            for part, cell in self.parts().items()
            for name in cell.parameters()
        ]

    def __call__(self, x: Any, carry: Any = None, *, lengths: Any = None, return_carry: bool = False) -> Any:
        """The outputs of all positions, (..., length, hidden_features); with `bidirectional` twice as many features.

        Args:
          x: of shape (..., length, in_features).
          carry: the carry of the first step, zeros by default; a pair with `bidirectional`.
          lengths: the number of valid positions of each sequence, integers of shape (...): outputs of other positions
            are zero, and the last carry is that of the last valid position. Inputs at other positions may be nan.
          return_carry: whether to return (outputs, last carry).
        """
        _checks.rank(self, x, (..., "length", self.in_features))
        if lengths is not None and jnp.shape(lengths) != x.shape[:-2]:
            raise ShapeError(
                f"{self._name()}: lengths must be {x.shape[:-2]}, one for each sequence, got {jnp.shape(lengths)}",
                shapes=[jnp.shape(lengths), x.shape],
                layer=self.path,
            )
        valid = None
        if lengths is not None:
            valid = jnp.arange(x.shape[-2]) < jnp.asarray(lengths)[..., None]
            # Replaced before the steps, because the derivatives of a step at nan are nan, even times 0.
            x = jnp.where(valid[..., None], x, jnp.zeros((), jnp.result_type(x)))
        if not self.bidirectional:
            carry, y = self._run(self.cell, x, carry, valid, self.reverse)
            return (y, carry) if return_carry else y
        first, second = (None, None) if carry is None else carry
        first, there = self._run(self.cell, x, first, valid, False)
        second, back = self._run(self.cell_reverse, x, second, valid, True)
        y = jnp.concatenate([there, back], axis=-1)
        return (y, (first, second)) if return_carry else y

    def _run(self, cell: Any, x: Any, carry: Any, valid: Any, reverse: bool) -> tuple[Any, Any]:
        projected = jnp.moveaxis(cell.project(x), -2, 0)
        if carry is None:
            carry = cell.initial_carry(projected.shape[1:-1], projected.dtype)
        if valid is None:
            carry, y = lax.scan(cell.step, carry, projected, reverse=reverse)
            return carry, jnp.moveaxis(y, 0, -2)

        # Invalid positions come last; in reverse the carry passes through them first, unchanged.
        def step(carry: Any, at: tuple[Any, Any]) -> tuple[Any, Any]:
            projected, valid = at
            new, y = cell.step(carry, projected)
            next_carry = phlox.tree.map(lambda a, b: jnp.where(valid, a, b), new, carry)
            return next_carry, jnp.where(valid, y, jnp.zeros((), y.dtype))

        carry, y = lax.scan(step, carry, (projected, jnp.moveaxis(valid, -1, 0)[..., None]), reverse=reverse)
        return carry, jnp.moveaxis(y, 0, -2)


class RNN(_Recurrent):
    """A recurrent layer with the step of `RNNCell`.

    Maps (..., length, in_features) to (..., length, hidden_features).

    Args:
      in_features, hidden_features: lengths of the last axis of inputs and hidden values.
      bidirectional: whether a second cell runs from the end; its outputs follow those of the first one.
      reverse: whether to run from the end.
      use_bias: whether the cells add something.

    Its parts are `cell` and, with `bidirectional`, `cell_reverse`.

    >>> import phlox
    >>> layer = RNN(8, 16)
    >>> layer.apply(layer.init(phlox.random.key(0)), phlox.numpy.ones((2, 5, 8))).shape
    (2, 5, 16)
    """

    _cell = RNNCell


class LSTM(_Recurrent):
    """A recurrent layer with the step of `LSTMCell`.

    Maps (..., length, in_features) to (..., length, hidden_features).

    Args:
      in_features, hidden_features: lengths of the last axis of inputs and hidden values.
      bidirectional: whether a second cell runs from the end; its outputs follow those of the first one.
      reverse: whether to run from the end.
      use_bias: whether the cells add something.

    Its parts are `cell` and, with `bidirectional`, `cell_reverse`.

    >>> import phlox
    >>> layer = LSTM(8, 16, bidirectional=True)
    >>> layer.apply(layer.init(phlox.random.key(0)), phlox.numpy.ones((2, 5, 8))).shape
    (2, 5, 32)
    """

    _cell = LSTMCell


class GRU(_Recurrent):
    """A recurrent layer with the step of `GRUCell`.

    Maps (..., length, in_features) to (..., length, hidden_features).

    Args:
      in_features, hidden_features: lengths of the last axis of inputs and hidden values.
      bidirectional: whether a second cell runs from the end; its outputs follow those of the first one.
      reverse: whether to run from the end.
      use_bias: whether the cells add something.

    Its parts are `cell` and, with `bidirectional`, `cell_reverse`.

    >>> import phlox
    >>> layer = GRU(8, 16)
    >>> layer.apply(layer.init(phlox.random.key(0)), phlox.numpy.ones((2, 5, 8))).shape
    (2, 5, 16)
    """

    _cell = GRUCell
