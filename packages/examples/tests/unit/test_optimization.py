"""The gradient through trainings, and factors over devices."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from example_runs import results, run
from phlox_examples import bilevel, matrix_factorization
from phlox_examples.options import parse


def test_the_gradient_through_a_training_is_that_of_finite_differences():
    options = parse(["bilevel", "--doubtful", "40", "--checked", "30"])
    with phlox.enable_x64(True):
        sets = bilevel.data(options)
        a = phlox.random.normal(phlox.random.key(0), (40,))
        value = phlox.jit(lambda a: bilevel.outer(a, sets["doubtful"], sets["checked"]))
        slope = np.asarray(phlox.jit(phlox.grad(value))(a))
        for i in (0, 7, 33):
            up, down = (float(value(a.at[i].add(d))) for d in (1e-4, -1e-4))
            assert slope[i] == pytest.approx((up - down) / 2e-4, rel=1e-5, abs=1e-10)
        w = bilevel.trained(a, sets["doubtful"])
        assert float(jnp.abs(phlox.grad(bilevel.inner)(w, a, sets["doubtful"])).max()) < 1e-9, "trained to the end"


def test_wrong_labels_are_found():
    words = "bilevel --doubtful 200 --checked 100 --steps 20 --rate 0.5"
    result = bilevel.compute(parse(words.split()))
    assert result["wrong"].mean() == 0.5
    assert result["share_found"] > 0.8
    assert result["losses"][-1] < result["losses"][0] / 2
    assert result["test_accuracy"] > result["accuracy_before"] + 0.05


def test_one_device_and_eight_find_the_same_factors(tmp_path):
    words = ("matrix-factorization", "--users", "64", "--items", "48", "--rank", "2", "--rounds", "6")
    run(*words, "--devices", "8", "--out", tmp_path)
    found = results(tmp_path, "matrix-factorization")
    assert found["largest_difference"] < 1e-12
    assert len(found["losses"]["one"]) == 6
    for losses in found["losses"].values():
        assert (np.diff(losses) < 1e-9 * losses[0]).all(), "no step increases the sum"


def test_factors_are_as_good_as_they_can_be():
    options = parse(["matrix-factorization", "--devices", "4", "--users", "240", "--items", "160", "--rank", "3"])
    result = matrix_factorization.compute(options)
    assert result["several"]["test"][-1] == pytest.approx(matrix_factorization.expected_error(options), rel=0.06)
    assert result["several"]["train"][-1] < matrix_factorization.NOISE
    assert result["several"]["users"].shape == (240, 3)


def test_a_row_is_the_least_squares_solution():
    with phlox.enable_x64(True):
        random = np.random.default_rng(0)
        features, table, known = (
            random.standard_normal((20, 3)),
            random.standard_normal((2, 20)),
            random.uniform(size=(2, 20)) < 0.6,
        )
        rows = np.asarray(
            matrix_factorization.solved(*map(jnp.asarray, (features, table, known.astype(float))), lambda x: x)
        )
    for row, values, some in zip(rows, table, known, strict=True):
        a = np.concatenate([features[some], np.sqrt(matrix_factorization.DECAY) * np.eye(3)])
        np.testing.assert_allclose(
            row, np.linalg.lstsq(a, np.concatenate([values[some], np.zeros(3)]), rcond=None)[0], rtol=1e-9
        )


def test_users_that_cannot_be_spread(tmp_path, capsys):
    run("matrix-factorization", "--users", "65", "--out", tmp_path, status=2)
    assert capsys.readouterr().err.startswith("./train: --users 65 cannot be split evenly over 8 devices")
