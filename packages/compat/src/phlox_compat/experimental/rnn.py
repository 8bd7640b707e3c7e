"""``phlox.experimental.rnn``: LSTMs of several layers on padded sequences, as in ``jax.experimental.rnn``.

There they are calls of cuDNN; here they are loops of the language, on every platform and with all transformations. The
weights are one vector in the order of cuDNN: for each layer (and direction) the matrices for inputs and for states,
then for each the two biases. A layer of two directions counts as two, forward and backward. Each weight has the rows of
four gates one after the other: input, forget, candidate, output.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from phlox import jit, lax, nn, numpy as jnp, random
from phlox.errors import UnsupportedError
from phlox.extend import publish
from phlox.typing import Array, ArrayLike

__all__ = [
    "get_num_params_in_lstm",
    "init_lstm_weight",
    "lstm",
    "lstm_ref",
    "swap_lstm_gates",
    "unpack_lstm_weights",
]

Weights = Mapping[int, Any]


def _shapes(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> list[tuple[int, ...]]:
    """The shapes of all weights, in their order in the vector."""
    directions = 2 if bidirectional else 1
    inputs = [input_size] * directions + [directions * hidden_size] * (directions * (num_layers - 1))
    matrices = [(4 * hidden_size, size) for each in inputs for size in (each, hidden_size)]
    return [*matrices, *[(4 * hidden_size,)] * (2 * len(inputs))]


def _pieces(weights: Any, *sizes: Any) -> list[Any]:
    """The weights of this vector, one by one."""
    pieces, start = [], 0
    for shape in _shapes(*sizes):
        end = start + math.prod(shape)
        pieces.append(weights[start:end].reshape(shape))
        start = end
    return pieces


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> int:
    """The length of the vector of weights.

    Args:
      input_size: length of the vectors of a sequence.
      hidden_size: length of the state.
      num_layers: number of layers.
      bidirectional: whether each layer also has a direction from the end of the sequence to its beginning.

    Returns:
      An int.

    >>> get_num_params_in_lstm(3, 2, num_layers=1, bidirectional=False)
    56
    """
    return sum(math.prod(shape) for shape in _shapes(input_size, hidden_size, num_layers, bidirectional))


def init_lstm_weight(rng: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Array:
    """Random weights, uniform between -k and k with k = hidden_size ** -0.5.

    Args:
      rng: PRNG key.
      input_size: length of the vectors of a sequence.
      hidden_size: length of the state.
      num_layers: number of layers.
      bidirectional: whether each layer has two directions.

    Returns:
      A vector of float32.

    >>> init_lstm_weight(phlox.random.key(0), 3, 2, 1, False).shape
    (56,)
    """
    k = hidden_size**-0.5
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    return random.uniform(rng, (count,), "float32", -k, k)


def swap_lstm_gates(
    weights: ArrayLike, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Array:
    """Weights whose last two gates are exchanged, for libraries with the order input, forget, output, candidate.

    Args:
      weights: the vector of weights.
      input_size: length of the vectors of a sequence.
      hidden_size: length of the state.
      num_layers: number of layers.
      bidirectional: whether each layer has two directions.

    Returns:
      A vector of the same length and dtype; the function is its own inverse.

    >>> swap_lstm_gates(jnp.arange(16), 1, 1, 1, False)
    Array([ 0,  1,  3,  2,  4,  5,  7,  6,  8,  9, 11, 10, 12, 13, 15, 14],      dtype=int32)
    """
    swapped = []
    for piece in _pieces(jnp.asarray(weights), input_size, hidden_size, num_layers, bidirectional):
        one, two, three, four = jnp.split(piece, 4)
        swapped += [x.reshape(-1) for x in (one, two, four, three)]
    return jnp.concatenate(swapped)


def unpack_lstm_weights(
    weights: ArrayLike, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[dict[int, Array], dict[int, Array], dict[int, Array], dict[int, Array]]:
    """The weights of each layer.

    Args:
      weights: the vector of weights.
      input_size: length of the vectors of a sequence.
      hidden_size: length of the state.
      num_layers: number of layers.
      bidirectional: whether each layer has two directions.

    Returns:
      Four dicts by number of the layer (of two directions: forward 2i, backward 2i + 1): matrices for inputs, matrices
      for states, biases for inputs, biases for states.

    >>> W_ih, W_hh, b_ih, b_hh = unpack_lstm_weights(jnp.zeros(56), 3, 2, 1, False)
    >>> W_ih[0].shape, W_hh[0].shape, b_ih[0].shape, b_hh[0].shape
    ((8, 3), (8, 2), (8,), (8,))
    """
    pieces = _pieces(jnp.asarray(weights), input_size, hidden_size, num_layers, bidirectional)
    matrices, biases = pieces[: len(pieces) // 2], pieces[len(pieces) // 2 :]
    inputs, states, input_biases, state_biases = (
        dict(enumerate(each)) for each in (matrices[::2], matrices[1::2], biases[::2], biases[1::2])
    )
    return inputs, states, input_biases, state_biases


def lstm(
    x: ArrayLike,
    h_0: ArrayLike,
    c_0: ArrayLike,
    weights: ArrayLike,
    seq_lengths: ArrayLike,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: Any = None,
) -> tuple[Array, Array, Array]:
    """An LSTM on a batch of padded sequences.

    Args:
      x: array of shape (batch, length, input_size).
      h_0, c_0: states and cells at the start, of shape (layers * directions, batch, hidden_size).
      weights: the vector of weights.
      seq_lengths: vector of int32: the length of each sequence; what comes after it is not read.
      input_size: length of the vectors of a sequence.
      hidden_size: length of the state.
      num_layers: number of layers.
      dropout: 0.0, nothing else.
      bidirectional: whether each layer has two directions.
      precision: precision of the products, as of `phlox.numpy.matmul`.

    Returns:
      The states of the last layer, of shape (batch, length, directions * hidden_size), zero after the end of a
      sequence; and the last states and cells of all layers, of the shape of `h_0`.

    Raises:
      UnsupportedError: `dropout` is not 0, or `seq_lengths` is not int32.

    >>> weights = init_lstm_weight(phlox.random.key(0), 3, 2, 1, False)
    >>> x, start = jnp.ones((1, 4, 3)), jnp.zeros((1, 1, 2))
    >>> y, h, c = lstm(x, start, start, weights, jnp.array([3]), 3, 2, 1, 0.0, False)
    >>> y.shape, bool((y[:, 2] == h[0]).all()), float(abs(y[:, 3]).max())
    ((1, 4, 2), True, 0.0)
    """
    pieces = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    _check("lstm", seq_lengths, dropout)
    out: tuple[Array, Array, Array] = _run(x, h_0, c_0, pieces, seq_lengths, bidirectional, precision)
    return out


def lstm_ref(
    x: ArrayLike,
    h_0: ArrayLike,
    c_0: ArrayLike,
    W_ih: Weights,
    W_hh: Weights,
    b_ih: Weights,
    b_hh: Weights,
    seq_lengths: ArrayLike,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
) -> tuple[Array, Array, Array]:
    """As `lstm`, with weights of `unpack_lstm_weights`.

    Args:
      x: array of shape (batch, length, input_size).
      h_0, c_0: states and cells at the start, of shape (layers * directions, batch, hidden_size).
      W_ih, W_hh, b_ih, b_hh: the weights of each layer.
      seq_lengths: vector of int32: the length of each sequence.
      input_size: length of the vectors of a sequence.
      hidden_size: length of the state.
      num_layers: number of layers.
      dropout: 0.0, nothing else.
      bidirectional: whether each layer has two directions.

    Returns:
      As `lstm`.

    Raises:
      UnsupportedError: `dropout` is not 0, or `seq_lengths` is not int32.

    >>> weights = init_lstm_weight(phlox.random.key(0), 3, 2, 1, False)
    >>> x, start = jnp.ones((1, 4, 3)), jnp.zeros((1, 1, 2))
    >>> y, h, c = lstm_ref(
    ...     x, start, start, *unpack_lstm_weights(weights, 3, 2, 1, False), jnp.array([4]), 3, 2, 1, 0.0, False
    ... )
    >>> y.shape
    (1, 4, 2)
    """
    _check("lstm_ref", seq_lengths, dropout)
    layers = range(num_layers * (2 if bidirectional else 1))
    pieces = tuple({layer: each[layer] for layer in layers} for each in (W_ih, W_hh, b_ih, b_hh))
    out: tuple[Array, Array, Array] = _run(x, h_0, c_0, pieces, seq_lengths, bidirectional, None)
    return out


def _check(function: str, seq_lengths: Any, dropout: float) -> None:
    if jnp.asarray(seq_lengths).dtype != "int32":
        raise UnsupportedError(f"{function}: seq_lengths can only be int32, got {jnp.asarray(seq_lengths).dtype}")
    if dropout != 0.0:
        raise UnsupportedError(f"{function}: dropout={dropout!r}", instead="dropout=0.0, and masks between layers")


@jit(static_argnames=("bidirectional", "precision"))
def _run(
    x: Any, h_0: Any, c_0: Any, pieces: tuple[Weights, ...], lengths: Any, bidirectional: bool, precision: Any
) -> tuple[Any, Any, Any]:
    sequence = jnp.swapaxes(jnp.asarray(x), 0, 1)
    inside = jnp.arange(sequence.shape[0])[:, None, None] < jnp.asarray(lengths)[:, None]
    directions = 2 if bidirectional else 1
    last_h, last_c = [], []
    for first in range(0, len(pieces[0]), directions):
        outs = []
        for direction in range(directions):
            layer = first + direction
            start = h_0[layer], c_0[layer]
            weights = [each[layer] for each in pieces]
            (h, c), out = _direction(sequence, inside, start, weights, bool(direction), precision)
            last_h.append(h)
            last_c.append(c)
            outs.append(out)
        sequence = jnp.concatenate(outs, axis=-1)
    return jnp.swapaxes(sequence, 0, 1), jnp.stack(last_h), jnp.stack(last_c)


def _direction(sequence: Any, inside: Any, start: Any, weights: list[Any], backward: bool, precision: Any) -> Any:
    """One layer in one direction. Steps outside of a sequence keep the state, so the way back begins at its end."""
    input_matrix, state_matrix, input_bias, state_bias = weights
    # The inputs of all steps at once: one large product in place of many small ones.
    from_inputs = jnp.matmul(sequence, input_matrix.T, precision=precision) + (input_bias + state_bias)

    def step(carry: Any, inputs: Any) -> Any:
        h, c = carry
        from_input, is_inside = inputs
        gates = from_input + jnp.matmul(h, state_matrix.T, precision=precision)
        enter, keep, candidate, leave = jnp.split(gates, 4, axis=-1)
        new_c = nn.sigmoid(keep) * c + nn.sigmoid(enter) * jnp.tanh(candidate)
        new_h = nn.sigmoid(leave) * jnp.tanh(new_c)
        new_carry = jnp.where(is_inside, new_h, h), jnp.where(is_inside, new_c, c)
        return new_carry, jnp.where(is_inside, new_h, 0)

    return lax.scan(step, start, (from_inputs, inside), reverse=backward)


publish(__name__)
