"""Training on batches of varying length: one program for each bucket, with the results of a program for each length."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
import phlox_optim as optim


def batches(epoch):
    rng = np.random.default_rng(epoch)
    for n in (8, 8, 5, 3):
        yield {"x": rng.normal(size=(n, 3)).astype(np.float32), "y": np.ones(n, np.float32)}


def errors(params, batch):
    error = batch["x"] @ params - batch["y"]
    return jnp.mean(error**2), {"error": jnp.abs(error).mean()}


def trained(step, sizes):
    held_out = [{"x": np.ones((n, 3), np.float32), "y": np.zeros(n, np.float32)} for n in (4, 3)]
    evaluate = optim.make_evaluation(lambda params, batch: errors(params, batch)[1], held_out, sizes=sizes)
    start = step.init(jnp.zeros(3))
    return optim.fit(start, step, batches, epochs=2, evaluate=evaluate, sizes=sizes, progress=False)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("sizes", ["n", "auto", {"x": "n", "y": ("n",)}])
def test_fit(sizes):
    step = optim.make_step(errors, optim.adam(0.1), clip=1.0, ema=0.9)
    expected, done = trained(step, None), trained(step, sizes)
    np.testing.assert_allclose(done.state.params, expected.state.params, rtol=1e-5)
    for row, other in zip(done.history, expected.history, strict=True):
        assert row.keys() == other.keys()
        np.testing.assert_allclose(list(row.values()), list(other.values()), rtol=1e-5)


def test_one_program_for_short_batches():
    traces = []

    def loss(params, batch):
        traces.append(batch["x"].shape)
        return errors(params, batch)[0]

    step = optim.make_step(loss, optim.sgd(0.1), sizes="n")
    train = step.init(jnp.zeros(3))
    for batch in batches(0):
        train, figures = step(train, batch)
    assert len(traces) == 1
    assert float(figures["loss"].count) == 3.0


def test_fit_of_another_step():
    def step(train, batch):
        return train.replace(step=train.step + 1), {"size": optim.metrics.mean(jnp.ones(batch["x"].shape[0]).sum())}

    start = optim.make_step(errors, optim.sgd(0.1)).init(jnp.zeros(3))
    done = optim.fit(start, step, batches, epochs=1, sizes="n", progress=False)
    assert int(done.state.step) == 4
    assert phlox.device_get(done.history[0]["size"]) > 0
