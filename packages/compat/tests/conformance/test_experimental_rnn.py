"""phlox.experimental.rnn beside jax's, whose own `lstm` runs on GPUs only: `lstm_ref` is the judge of both."""

import jax
import jax.experimental.rnn
import numpy as np
import pytest

import phlox
import phlox.experimental.rnn
from conformance.harness import agree, outcome, row

NEAR = row("rnn")
INPUT, HIDDEN, BATCH, LENGTH = 3, 4, 2, 5
LENGTHS = np.array([5, 3], np.int32)


def both(case):
    agree(outcome(case, phlox, ()), outcome(case, jax, ()), NEAR, "")


def start(layers, bidirectional):
    count = layers * (2 if bidirectional else 1)
    random = np.random.default_rng(layers)
    x = random.normal(size=(BATCH, LENGTH, INPUT)).astype(np.float32)
    h, c = random.normal(size=(2, count, BATCH, HIDDEN)).astype(np.float32)
    return x, h, c


def reference(m, weights, x, h, c, layers, bidirectional):
    sizes = INPUT, HIDDEN, layers
    rnn = m.experimental.rnn
    unpacked = rnn.unpack_lstm_weights(weights, *sizes, bidirectional)
    return rnn.lstm_ref(x, h, c, *unpacked, m.numpy.asarray(LENGTHS), *sizes, 0.0, bidirectional)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_weights(layers, bidirectional):
    def run(m):
        rnn, sizes = m.experimental.rnn, (INPUT, HIDDEN, layers, bidirectional)
        weights = rnn.init_lstm_weight(m.random.key(3), *sizes)
        count = rnn.get_num_params_in_lstm(*sizes)
        swapped = rnn.swap_lstm_gates(weights, *sizes)
        return weights, count, swapped, rnn.unpack_lstm_weights(weights, *sizes)

    both(run)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_lstm_ref(layers, bidirectional):
    def run(m):
        weights = m.experimental.rnn.init_lstm_weight(m.random.key(3), INPUT, HIDDEN, layers, bidirectional)
        x, h, c = (m.numpy.asarray(a) for a in start(layers, bidirectional))

        def loss(weights, x, h, c):
            outs = reference(m, weights, x, h, c, layers, bidirectional)
            return sum((out**2).sum() for out in outs), outs

        return m.value_and_grad(loss, (0, 1, 2, 3), has_aux=True)(weights, x, h, c)

    both(run)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_lstm_is_lstm_ref(bidirectional):
    weights = phlox.experimental.rnn.init_lstm_weight(phlox.random.key(3), INPUT, HIDDEN, 2, bidirectional)
    x, h, c = start(2, bidirectional)
    call = phlox.jit(
        lambda w, x: phlox.experimental.rnn.lstm(x, h, c, w, LENGTHS, INPUT, HIDDEN, 2, 0.0, bidirectional, "highest")
    )
    want = reference(phlox, weights, x, h, c, 2, bidirectional)
    for mine, theirs in zip(call(weights, x), want, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6)
    mapped = phlox.vmap(call, in_axes=(None, 0))(weights, np.stack([x, 2 * x]))
    np.testing.assert_allclose(mapped[0][0], want[0], rtol=1e-6, atol=1e-6)


def test_padding_is_not_read():
    """Nor is it for sequences of no element, where jax reads the last step."""
    weights = phlox.experimental.rnn.init_lstm_weight(phlox.random.key(3), INPUT, HIDDEN, 1, True)
    x, h, c = start(1, True)
    x[0, 2:] = np.nan
    y, h_n, c_n = phlox.experimental.rnn.lstm(x, h, c, weights, np.array([2, 0], np.int32), INPUT, HIDDEN, 1, 0.0, True)
    assert np.isfinite(y).all() and np.isfinite(h_n).all() and not np.asarray(y[0, 2:]).any()
    assert not np.asarray(y[1]).any()
    np.testing.assert_array_equal(h_n[:, 1], h[:, 1])
    np.testing.assert_array_equal(c_n[:, 1], c[:, 1])


def test_what_is_refused():
    x, h, c = start(1, False)
    weights = np.zeros(phlox.experimental.rnn.get_num_params_in_lstm(INPUT, HIDDEN, 1, False), np.float32)
    sizes = INPUT, HIDDEN, 1
    with pytest.raises(NotImplementedError, match="dropout"):
        phlox.experimental.rnn.lstm(x, h, c, weights, LENGTHS, *sizes, 0.5, False)
    with pytest.raises(NotImplementedError, match="int32"):
        phlox.experimental.rnn.lstm(x, h, c, weights, LENGTHS.astype(np.uint8), *sizes, 0.0, False)
