"""Metrics over batches of any size are scikit-learn's on the whole set, and add up over devices."""

import numpy as np
import pytest
import sklearn.metrics as sk

import phlox
import phlox.numpy as jnp
import phlox_optim as optim
from phlox.errors import ArgumentError, ShapeError
from phlox_optim import metrics

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 4, 101)
SCORES = (RNG.normal(size=(101, 4)) + 1.5 * np.eye(4)[LABELS]).astype("f4")
CHOSEN = SCORES.argmax(1)
BINARY = (LABELS > 1).astype(int)
#: rounded, so that there are ties
POSITIVE = np.round(1 / (1 + np.exp(-(BINARY * 2 - 1 + RNG.normal(size=101) * 1.5))), 1).astype("f4")
WEIGHTS = RNG.integers(0, 3, 101).astype("f4")
TARGETS = (1000 + RNG.normal(size=101)).astype("f4")
GUESSES = (TARGETS + 0.5 * RNG.normal(size=101)).astype("f4")


def in_batches(metric, *arrays, sizes=(1, 40, 3, 57)):
    """The value over batches, each computed in a compiled function and merged."""
    compiled, total, start = phlox.jit(metric), None, 0
    for size in sizes:
        batch = compiled(*(a[start : start + size] for a in arrays))
        total, start = batch if total is None else metrics.merge(total, batch), start + size
    assert start == len(arrays[0])
    return np.asarray(total.value())


CASES = {
    **{
        f"{name} {average}": (
            lambda s, y, m, name=name, average=average: getattr(metrics, name)(s, y, m, average=average),
            lambda y, p, w, name=name, average=average: getattr(sk, f"{name}_score")(
                y, p, sample_weight=w, average=average, zero_division=0
            ),
        )
        for name in ("precision", "recall", "f1")
        for average in ("macro", "micro", "weighted", None)
    },
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("weighted", [True, False])
def test_of_several_classes(name, weighted):
    own, expected = CASES[name]
    weights = WEIGHTS if weighted else np.ones(101, "f4")
    np.testing.assert_allclose(in_batches(own, SCORES, LABELS, weights), expected(LABELS, CHOSEN, weights), rtol=1e-6)


def test_a_class_that_never_comes():
    keep = (LABELS != 2) & (CHOSEN != 2)
    for name in ("precision", "recall", "f1"):
        own = getattr(metrics, name)(SCORES[keep], LABELS[keep]).value()
        expected = getattr(sk, f"{name}_score")(LABELS[keep], CHOSEN[keep], average="macro")
        np.testing.assert_allclose(own, expected, rtol=1e-6)


@pytest.mark.parametrize("weighted", [True, False])
def test_of_two_classes(weighted):
    weights = WEIGHTS if weighted else np.ones(101, "f4")
    predicted = POSITIVE > 0.5
    for name in ("precision", "recall", "f1"):
        own = in_batches(getattr(metrics, name), POSITIVE, BINARY, weights)
        np.testing.assert_allclose(
            own, getattr(sk, f"{name}_score")(BINARY, predicted, sample_weight=weights), rtol=1e-6
        )
    own = in_batches(metrics.auc, POSITIVE, BINARY, weights)
    np.testing.assert_allclose(own, sk.roc_auc_score(BINARY, POSITIVE, sample_weight=weights), rtol=1e-6)
    own = in_batches(metrics.average_precision, POSITIVE, BINARY, weights)
    np.testing.assert_allclose(own, sk.average_precision_score(BINARY, POSITIVE, sample_weight=weights), rtol=1e-6)


def test_logits_have_another_threshold():
    logits = np.log(POSITIVE / (1 - POSITIVE + 1e-9) + 1e-9)
    np.testing.assert_allclose(
        metrics.f1(logits, BINARY, threshold=0.0).value(), sk.f1_score(BINARY, logits > 0), rtol=1e-6
    )


@pytest.mark.parametrize("weighted", [True, False])
def test_of_regression(weighted):
    weights = WEIGHTS if weighted else np.ones(101, "f4")
    options = {"sample_weight": weights}
    own = in_batches(metrics.r2, GUESSES, TARGETS, weights)
    np.testing.assert_allclose(own, sk.r2_score(TARGETS, GUESSES, **options), rtol=1e-4)
    own = in_batches(metrics.mae, GUESSES, TARGETS, weights)
    np.testing.assert_allclose(own, sk.mean_absolute_error(TARGETS, GUESSES, **options), rtol=1e-6)
    own = in_batches(metrics.mse, GUESSES, TARGETS, weights)
    np.testing.assert_allclose(own, sk.mean_squared_error(TARGETS, GUESSES, **options), rtol=1e-6)


@pytest.mark.parametrize("bins", [5, 15])
def test_calibration(bins):
    probabilities = np.exp(SCORES) / np.exp(SCORES).sum(1, keepdims=True)
    confidence, hits = probabilities.max(1), CHOSEN == LABELS
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = [abs(confidence[place == n].sum() - hits[place == n].sum()) for n in range(bins)]
    own = in_batches(lambda p, y: metrics.calibration_error(p, y, bins=bins), probabilities, LABELS)
    np.testing.assert_allclose(own, sum(gaps) / 101, rtol=1e-5)
    from sklearn.calibration import calibration_curve

    odd = POSITIVE + 0.013  # on no edge
    true, mean = calibration_curve(BINARY, odd.clip(0, 0.999), n_bins=bins)
    counts = np.bincount(np.minimum((odd.clip(0, 0.999) * bins).astype(int), bins - 1), minlength=bins)
    expected = (np.abs(true - mean) * counts[counts > 0]).sum() / 101
    own = in_batches(lambda p, y: metrics.calibration_error(p, y, bins=bins), odd.clip(0, 0.999), BINARY)
    np.testing.assert_allclose(own, expected, rtol=1e-5)


def test_over_a_mapped_axis():
    def figures(scores, labels, guesses, targets):
        return {
            "f1": metrics.f1(scores, labels),
            "auc": metrics.auc(scores, labels),
            "r2": metrics.r2(guesses, targets),
        }

    arrays = [a[:100].reshape(4, 25) for a in (POSITIVE, BINARY, GUESSES, TARGETS)]
    run = phlox.vmap(lambda *a: metrics.over_devices(figures(*a), "i"), axis_name="i")
    values = metrics.values(phlox.tree.map(lambda leaf: leaf[0], run(*arrays)))
    assert values["f1"] == pytest.approx(sk.f1_score(BINARY[:100], POSITIVE[:100] > 0.5), rel=1e-6)
    assert values["auc"] == pytest.approx(sk.roc_auc_score(BINARY[:100], POSITIVE[:100]), rel=1e-6)
    assert values["r2"] == pytest.approx(sk.r2_score(TARGETS[:100], GUESSES[:100]), rel=1e-4)


@pytest.mark.parametrize("accumulate", [1, 5])
def test_in_a_training_that_is_stopped(tmp_path, accumulate):
    """AUC and R2 among the figures of steps, with parts of batches, checkpoints within the epoch, and an evaluation."""
    from phlox_optim.checkpoint import CheckpointManager

    def loss(params, batch):
        scores, labels, targets = batch
        figures = {"auc": metrics.auc(scores, labels), "r2": metrics.r2(targets + 0.5, targets)}
        return (params["w"] ** 2).mean(), figures

    step = optim.make_step(loss, optim.sgd(0.1), accumulate=accumulate)
    batches = [(POSITIVE[n : n + 20], BINARY[n : n + 20], TARGETS[n : n + 20]) for n in range(0, 100, 20)]
    evaluate = optim.make_evaluation(lambda params, b: {"auc": metrics.auc(b[0], b[1])}, batches)

    def start():
        return step.init({"w": jnp.ones(2)})

    class Stop(Exception):
        pass

    def stopping(train, batch):
        if int(train.step) == 3:
            raise Stop
        return step(train, batch)

    with CheckpointManager(tmp_path) as checkpoints:
        options = {"epochs": 1, "checkpoints": checkpoints, "save_every": 2, "progress": False, "evaluate": evaluate}
        with pytest.raises(Stop):
            optim.fit(start(), stopping, batches, **options)
        row = optim.fit(start(), step, batches, **options).history[0]
    expected = sk.roc_auc_score(BINARY[:100], POSITIVE[:100])
    assert row["auc"] == pytest.approx(expected, rel=1e-6) and row["eval_auc"] == row["auc"]
    assert row["r2"] == pytest.approx(sk.r2_score(TARGETS[:100], TARGETS[:100] + 0.5), rel=1e-4)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: metrics.precision(SCORES, BINARY[:50]), ShapeError, "precision got scores f32.101,4. and labels"),
        (lambda: metrics.auc(SCORES, LABELS), ShapeError, r"auc got scores f32\[101,4\]"),
        (lambda: metrics.r2(GUESSES[:, None], TARGETS), ShapeError, r"predictions\[:, 0\]"),
        (lambda: metrics.mae(GUESSES, TARGETS[:5]), ShapeError, "mae got predictions"),
        (lambda: metrics.f1(SCORES, LABELS, average="mikro"), ArgumentError, "average is 'mikro'"),
        (lambda: metrics.f1(SCORES, LABELS, average="binary"), ArgumentError, "with 4 classes"),
        (lambda: metrics.recall(POSITIVE, BINARY, np.ones(3)), ShapeError, "recall: the mask has shape"),
        (lambda: metrics.calibration_error(SCORES, TARGETS[:3]), ShapeError, "calibration_error got scores"),
    ],
)
def test_wrong_shapes(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("outside", [-1, -100, 4])
def test_labels_that_are_no_class(outside):
    """They count for no class: negative ones, which mark what is to be ignored, do not count from the end."""
    scores, labels = jnp.eye(4)[jnp.array([0, 1, 3, 3])], np.array([0, 1, 3, outside])
    assert metrics.confusion(scores, labels).value().sum() == 3
    np.testing.assert_array_equal(metrics.recall(scores, labels, average=None).value(), [1, 1, 0, 1])
    np.testing.assert_array_equal(metrics.precision(scores, labels, average=None).value(), [1, 1, 0, 0.5])
