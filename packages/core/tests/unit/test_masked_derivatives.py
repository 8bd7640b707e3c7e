"""Masked nan, infinity and large numbers reach neither values nor derivatives of functions with ``where=`` or masks."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import nn

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 6)).astype("f4")
MASK = RNG.random((4, 6)) < 0.6
MASK[0], MASK[3], MASK[1, 0] = True, False, False  # a row with all elements, and one with none
WEIGHTS = RNG.normal(size=(4, 6)).astype("f4")
HALF = np.full(X.shape, 0.5, "f4")

FUNCTIONS = {
    **{name: getattr(jnp, name) for name in ("sum", "prod", "mean", "var", "std")},
    **{name: getattr(jnp, name) for name in ("nansum", "nanprod", "nanmean", "nanvar", "nanstd")},
    "var, ddof": lambda x, **options: jnp.var(x, ddof=1, **options),
    "var, mean": lambda x, **options: jnp.var(x, mean=0.5, **options),
    "max": lambda x, **options: jnp.max(x, initial=-9.0, **options),
    "nanmin": lambda x, **options: jnp.nanmin(x, initial=9.0, **options),
    **{name: getattr(nn, name) for name in ("softmax", "log_softmax", "logsumexp", "logmeanexp", "standardize")},
    "logsumexp, b": lambda x, **options: nn.logsumexp(x, b=HALF, **options),
    "logsumexp, sign": lambda x, **options: nn.logsumexp(x, b=-HALF, return_sign=True, **options)[0],
    "standardize, stable": lambda x, **options: nn.standardize(x, algorithm="stable", **options),
    "add.reduce": jnp.add.reduce,
    "multiply.reduce": jnp.multiply.reduce,
    "logaddexp.reduce": jnp.logaddexp.reduce,
    "frompyfunc.reduce": lambda x, **options: jnp.frompyfunc(jnp.arctan2, 2, 1).reduce(x, initial=1.0, **options),
}


def reduced(function, x, axis):
    """The function along an axis, with 0 where it is masked or not finite, and its weighted sum."""
    y = function(x, axis=axis, where=MASK)
    y = jnp.where(jnp.isfinite(phlox.lax.stop_gradient(y)) & (MASK if y.shape == MASK.shape else True), y, 0)
    return (y * (WEIGHTS if y.shape == MASK.shape else WEIGHTS[0, : len(y)])).sum(), y


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("axis", [0, 1])
def test_where(name, axis):
    run = phlox.jit(phlox.value_and_grad(lambda x: reduced(FUNCTIONS[name], x, axis), has_aux=True))
    (_, expected), slopes = run(X)
    assert np.isfinite(slopes).all() and not np.asarray(slopes)[~MASK].any()
    for masked in (np.nan, np.inf, -np.inf, 1e30, 300.0):
        (_, value), found = run(np.where(MASK, X, np.float32(masked)))
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found, slopes, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["var", "std", "logsumexp", "standardize", "logmeanexp"])
def test_where_is_the_function_of_the_rest(name):
    """Values and derivatives are those of the array without the masked elements."""
    function = getattr(jnp, name, None) or getattr(nn, name)
    row, keep = X[1], MASK[1]
    options = {"axis": None}

    def total(y):
        return (y * jnp.arange(1.0, 1.0 + y.size).reshape(y.shape)).sum()

    def whole(x):
        y = function(x, where=keep, **options)
        return total(y[keep] if y.shape == x.shape else y)

    found, slopes = phlox.value_and_grad(whole)(np.where(keep, row, np.nan))
    value, rest = phlox.value_and_grad(lambda x: total(function(x, **options)))(row[keep])
    np.testing.assert_allclose(found, value, rtol=1e-5)
    np.testing.assert_allclose(slopes[keep], rest, rtol=1e-4, atol=1e-6)


B, T, S, N, K, H = 2, 4, 5, 4, 2, 3
Q, KEYS, VALUES = (RNG.normal(size=shape).astype("f4") for shape in ((B, T, N, H), (B, S, K, H), (B, S, K, H)))
KEY_LENGTHS, QUERY_LENGTHS = np.array([3, 5], "i4"), np.array([4, 1], "i4")
KEY_VALID, QUERY_VALID = np.arange(S) < KEY_LENGTHS[:, None], np.arange(T) < QUERY_LENGTHS[:, None]
BOTH = KEY_VALID[:, None, None] & QUERY_VALID[:, None, :, None]
IGNORED = {
    "mask": {"mask": KEY_VALID[:, None, None]},
    "mask of heads, causal": {"mask": np.broadcast_to(KEY_VALID[:, None, None], (B, N, T, S)), "is_causal": True},
    "bias": {"bias": np.where(KEY_VALID, 0.3, -np.inf)[:, None, None].astype("f4")},
    "lengths of keys": {"key_value_seq_lengths": KEY_LENGTHS, "local_window_size": 2},
    "lengths of both": {"query_seq_lengths": QUERY_LENGTHS, "key_value_seq_lengths": KEY_LENGTHS},
    "mask of both": {"mask": BOTH},
}


@pytest.mark.parametrize("name", IGNORED)
def test_attention(name):
    options = IGNORED[name]

    def loss(*args):
        y = nn.dot_product_attention(*args, **options)
        y = y * QUERY_VALID[:, :, None, None] if "both" in name else y
        return (y * jnp.arange(1.0, 1.0 + Q.size).reshape(Q.shape)).sum(), y

    run = phlox.jit(phlox.value_and_grad(loss, (0, 1, 2), has_aux=True))
    expected = phlox.tree.leaves(run(Q, KEYS, VALUES))
    for bad in (np.float32(np.nan), np.float32(np.inf)):
        keys = KEY_VALID[..., None, None]
        queries = np.where(QUERY_VALID[..., None, None], Q, bad) if "both" in name else Q
        found = phlox.tree.leaves(run(queries, np.where(keys, KEYS, bad), np.where(keys, VALUES, bad)))
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_attention_to_nothing():
    """A query that ignores all keys gets the mean of the values, by a mask as by a bias; as in JAX."""
    mask = np.ones((1, 1, T, S), bool)
    mask[:, :, 2] = False
    for options in ({"mask": mask}, {"bias": np.where(mask, 0, -np.inf).astype("f4")}):
        y, back = phlox.vjp(lambda *args: nn.dot_product_attention(*args, **options), Q, KEYS, VALUES)
        np.testing.assert_allclose(y[:, 2], np.repeat(VALUES.mean(1), N // K, axis=1), rtol=1e-5, atol=1e-6)
        assert all(np.isfinite(slope).all() for slope in back(jnp.ones_like(y)))
