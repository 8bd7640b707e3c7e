"""The training step that both programs share."""

import numpy as np
import pytest
from phlox_examples.network import training

import phlox
import phlox.numpy as jnp
from phlox_examples.options import Settings

SETTINGS = Settings(seed=0, widths=(32, 32, 32), epochs=1, batch_size=8, learning_rate=0.01)


@pytest.fixture
def pictures():
    rng = np.random.default_rng(0)
    return {"image": rng.normal(size=(8, 64)).astype("float32"), "label": np.arange(8, dtype="int32")}


def test_activations_keep_mean_and_deviation():
    """What SELU and its initialization are for."""
    init, _, _ = training(SETTINGS._replace(widths=(512,) * 8), 10)
    hidden = phlox.random.normal(phlox.random.key(1), (256, 64))
    layers = init(phlox.random.key(0)).params["0"]["layers"]
    for number in range(8):
        layer = layers[str(number)]
        hidden = phlox.nn.selu(hidden @ layer["weight"] + layer["bias"])
        assert abs(float(hidden.mean())) < 0.1
        assert 0.85 < float(hidden.std()) < 1.15


def test_parts_of_a_batch_make_the_step_of_the_whole(pictures):
    init, step, _ = training(SETTINGS, 10)
    state = init(phlox.random.key(0))
    whole, loss = step(state, pictures)
    cut = {name: array.reshape(4, 2, *array.shape[1:]) for name, array in pictures.items()}
    parts, losses = phlox.vmap(lambda part: step(state, part, axis="parts"), axis_name="parts")(cut)
    np.testing.assert_allclose(losses, np.full(4, loss), rtol=1e-5)
    for part, leaf in zip(phlox.tree.leaves(parts.params), phlox.tree.leaves(whole.params), strict=True):
        np.testing.assert_allclose(part, jnp.broadcast_to(leaf, part.shape), rtol=1e-3, atol=1e-5)


def test_noise_differs_from_step_to_step_and_picture_to_picture(pictures):
    init, step, _ = training(SETTINGS, 10)
    state = init(phlox.random.key(0))
    after, loss = step(state, pictures)
    assert float(step(state, pictures)[1]) == float(loss)
    assert float(step(state._replace(key=after.key), pictures)[1]) != float(loss)
    one = {name: np.repeat(array[:1], 8, axis=0) for name, array in pictures.items()}
    other = {name: np.roll(array, 1, axis=0) for name, array in pictures.items()}
    assert float(step(state, one)[1]) != float(step(state, {name: array[:1] for name, array in one.items()})[1])
    assert float(step(state, other)[1]) != float(loss)


def test_evaluation(pictures):
    init, _, evaluate = training(SETTINGS, 10)
    params = init(phlox.random.key(0)).params
    # A network that says 3 whatever it sees.
    last = params["0"]["layers"]["3"]
    last.update(weight=jnp.zeros_like(last["weight"]), bias=jnp.zeros_like(last["bias"]).at[3].set(2.0))
    loss, accuracy = evaluate(params, pictures)
    assert float(accuracy) == 1 / 8
    scores = np.log(np.exp(2.0) + 9) - np.where(np.arange(8) == 3, 2.0, 0.0)
    assert float(loss) == pytest.approx(scores.mean(), rel=1e-5)
