"""Metrics against scikit-learn, in whole and merged of parts, and in jit and over devices."""

import numpy as np
import pytest
from sklearn import metrics as sk

import phlox
import phlox.numpy as jnp
from phlox.errors import ArgumentError, ShapeError
from phlox_optim import metrics

CASES = range(6)


def draw(seed):
    rng = np.random.default_rng(seed)
    n, classes = int(rng.integers(1, 60)), int(rng.integers(3, 9))
    scores = rng.normal(size=(n, classes)).astype(np.float32)
    return scores, rng.integers(0, classes, n), rng.random(n) < 0.8, classes


def in_parts(measure, *arrays):
    """The metric of all examples: the merge of those of parts, each computed under jit."""
    cuts = [slice(0, 7), slice(7, 8), slice(8, None)]
    parts = [phlox.jit(measure)(*(a[cut] for a in arrays)) for cut in cuts if len(arrays[0][cut])]
    total = parts[0]
    for part in parts[1:]:
        total = metrics.merge(total, part)
    return total.value()


@pytest.mark.parametrize("seed", CASES)
def test_against_scikit_learn(seed):
    scores, labels, mask, classes = draw(seed)
    mask[0] = True
    options = {"labels": list(range(classes))}
    real = scores[mask], labels[mask]
    expected = {
        "accuracy": sk.accuracy_score(real[1], real[0].argmax(1)),
        "top_k": sk.top_k_accuracy_score(real[1], real[0], k=2, **options),
        "confusion": sk.confusion_matrix(real[1], real[0].argmax(1), **options),
        "mean": np.mean(scores[mask]),
    }
    found = {
        "accuracy": in_parts(metrics.accuracy, scores, labels, mask),
        "top_k": in_parts(lambda s, y, m: metrics.top_k(s, y, 2, m), scores, labels, mask),
        "confusion": in_parts(metrics.confusion, scores, labels, mask),
        "mean": in_parts(lambda s, m: metrics.mean(s.mean(-1), m), scores, mask),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


def test_perplexity_is_of_all_tokens_and_not_the_mean_of_batches():
    losses = np.random.default_rng(0).random(20).astype(np.float32)
    np.testing.assert_allclose(in_parts(metrics.perplexity, losses), np.exp(losses.mean()), rtol=1e-6)


def test_what_is_masked_may_be_nan():
    values = jnp.array([1.0, np.nan, 3.0])
    assert metrics.mean(values, jnp.array([1, 0, 3])).value() == 2.5
    weights = jnp.array([1.0, 0.0, 3.0])
    slopes = phlox.grad(lambda x, w: metrics.mean(x, w).value(), (0, 1))(values, weights)
    np.testing.assert_allclose(slopes[0], [0.25, 0, 0.75])
    assert np.isfinite(slopes[1]).all()


def test_a_confusion_matrix_of_fractional_weights():
    found = metrics.confusion(jnp.eye(3), jnp.array([0, 1, 1]), jnp.array([0.5, 0.25, 2.0]))
    np.testing.assert_array_equal(found.value(), [[0.5, 0, 0], [0, 0.25, 2.0], [0, 0, 0]])


def test_over_devices():
    scores, labels = np.random.default_rng(1).normal(size=(8, 3, 4)).astype(np.float32), np.arange(24).reshape(8, 3) % 4
    measure = phlox.pmap(lambda s, y: phlox.lax.psum(metrics.accuracy(s, y), "data"), axis_name="data")
    total = phlox.tree.map(lambda x: x[0], measure(scores, labels))
    assert (
        total.value()
        == metrics.accuracy(scores, labels).value()
        == (scores.argmax(-1) == labels).mean(dtype=np.float32)
    )


def test_values():
    found = metrics.values({"a": jnp.float32(2), "b": metrics.confusion(jnp.eye(2), jnp.array([0, 1])), "c": 3})
    assert found.pop("b").tolist() == [[1, 0], [0, 1]]
    assert found == {"a": 2.0, "c": 3.0}
    assert all(type(value) is float for value in found.values())


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: metrics.accuracy(jnp.ones((3, 4)), jnp.ones((3, 1), int)), ShapeError, r"scores f32\[3,4\] and labels i32\[3,1\]"),
        (lambda: metrics.accuracy(jnp.ones((3, 4)), jnp.ones(3)), ShapeError, r"labels f32\[3\]"),
        (lambda: metrics.confusion(jnp.ones(()), jnp.ones((), int)), ShapeError, "confusion got"),
        (lambda: metrics.mean(jnp.ones(3), jnp.ones(2)), ShapeError, r"shape \(2,\), the examples \(3,\)"),
        (lambda: metrics.values({"x": jnp.ones(3)}), ArgumentError, r"'x' is f32\[3\]"),
        (lambda: metrics.values({"x": "text"}), ArgumentError, "'x' is a str"),
    ],
)  # fmt: skip
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
