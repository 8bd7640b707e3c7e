"""nan and infinity in the padding reach neither results nor gradients of layers that are told where it is."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
import phlox_nn as nn

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 5, 8)).astype("f4")
LENGTHS = np.array([5, 2, 1])
VALID = np.arange(5) < LENGTHS[:, None]
WEIGHTS = RNG.normal(size=X.shape).astype("f4") * VALID[..., None]


def check(layer, call, x=X, valid=VALID, *, exact=True):
    """Results at valid positions and all gradients are the same whatever the padding is."""
    params = layer.init(phlox.random.key(0))

    def loss(params, x):
        y = jnp.where(valid[..., None], call(layer.bind(params, key=phlox.random.key(2), train=True), x), 0)
        return (y * WEIGHTS[..., : y.shape[-1]]).sum(), y

    run = phlox.jit(phlox.value_and_grad(loss, (0, 1), has_aux=True))
    expected = run(params, x)
    for padding in (np.nan, np.inf):
        found = run(params, np.where(valid[..., None], x, np.float32(padding)))
        for a, b in zip(phlox.tree.leaves(found), phlox.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
    _, (_, slopes) = found
    assert not np.asarray(slopes)[~valid].any() or not exact


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("options", [{}, {"bidirectional": True}, {"reverse": True}], ids=str)
def test_recurrent_layers(kind, options):
    layer = getattr(nn, kind)(8, 4, **options)
    check(layer, lambda model, x: model(x, lengths=LENGTHS))


def test_the_last_carry_and_sequences_of_no_length():
    layer = nn.LSTM(8, 4)
    params = layer.init(phlox.random.key(0))

    def last(params, x):
        _, (h, c) = layer.apply(params, x, lengths=np.array([5, 0, 1]), return_carry=True)
        return (h * c).sum()

    x = np.where((np.arange(5) < np.array([[5], [0], [1]]))[..., None], X, np.nan)
    grads = phlox.grad(last)(params, x)
    assert all(np.isfinite(leaf).all() for leaf in phlox.tree.leaves(grads))


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("form", ["keys", "heads", "both"])
def test_self_attention(form, causal, dropout):
    """`both`: the mask also excludes the queries, whose rows then see no key."""
    masks = {"keys": VALID[:, None], "heads": VALID[:, None, None], "both": VALID[:, None] & VALID[:, :, None]}
    layer = nn.MultiHeadAttention(8, 4, kv_heads=2, causal=causal, dropout=dropout, rotary_base=100.0)
    check(layer, lambda model, x: model(x, mask=masks[form]))


def test_attention_to_a_context():
    layer = nn.MultiHeadAttention(8, 2)
    queries = jnp.asarray(RNG.normal(size=(3, 5, 8)).astype("f4"))
    check(layer, lambda model, x: model(queries, x, mask=VALID[:, None]))


def test_nan_at_positions_that_count_is_kept():
    """A position that others do not attend to, but that is a query of its own, is no padding."""
    layer = nn.MultiHeadAttention(8, 2)
    x = X.copy()
    x[0, 4] = np.nan
    mask = np.broadcast_to(np.arange(5) < 4, (3, 5, 5))
    y = np.asarray(layer.apply(layer.init(phlox.random.key(0)), x, mask=mask))
    assert np.isnan(y[0, 4]).all() and np.isfinite(y[0, :4]).all()
