"""BYOL and DINO: losses, moving averages, and which parameters get gradients."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
from phlox_models import byol, dino

RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(2, 6, 4, 4, 3)).astype(np.float32)
ENCODER = nn.Sequential(nn.flatten, nn.Linear(48, 8))


@pytest.fixture
def networks():
    model = byol.BYOL(ENCODER, 8, 4, 16)
    params, target = model.init(phlox.random.key(0)), model.init(phlox.random.key(1))
    return model, params, model.init_state(), target, model.init_state()


def test_byol_loss_is_that_of_the_paper(networks):
    model, params, state, target, target_state = networks
    loss, (new_state, new_target_state) = byol.byol_loss(model, params, state, target, target_state, *IMAGES)
    expected = 0.0
    for a, b in ((0, 1), (1, 0)):
        q = np.asarray(model.apply(params, IMAGES[a], state=state, train=True)[0][1], np.float64)
        z = np.asarray(model.apply(target, IMAGES[b], state=target_state, train=True)[0][0], np.float64)
        cosines = (q * z).sum(-1) / np.linalg.norm(q, axis=-1) / np.linalg.norm(z, axis=-1)
        expected += np.mean(2 - 2 * cosines)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    for old, new in ((state, new_state), (target_state, new_target_state)):
        assert not np.array_equal(old["projector"]["norm"]["mean"], new["projector"]["norm"]["mean"])


def test_only_the_online_network_of_byol_gets_gradients(networks):
    model, params, state, target, target_state = networks
    gradients = phlox.grad(
        lambda params, target: byol.byol_loss(model, params, state, target, target_state, *IMAGES)[0], argnums=(0, 1)
    )(params, target)
    assert all(np.any(x) for x in phlox.tree.leaves(gradients[0]["predictor"]["out"]))
    assert not any(np.any(x) for x in phlox.tree.leaves(gradients[1]))


def test_byol_learns_to_predict_its_target(networks):
    model, params, state, target, target_state = networks

    @phlox.jit
    def step(params, state, target, target_state):
        function = phlox.value_and_grad(byol.byol_loss, argnums=1, has_aux=True)
        (loss, states), gradients = function(model, params, state, target, target_state, *IMAGES)
        params = phlox.tree.map(lambda p, g: p - 0.2 * g, params, gradients)
        return loss, params, states[0], byol.moving_average(target, params, 0.99), states[1]

    losses = []
    for _ in range(40):
        loss, params, state, target, target_state = step(params, state, target, target_state)
        losses.append(float(loss))
    assert losses[-1] < 0.5 * losses[0]


def test_decay_grows_along_a_cosine():
    steps = np.arange(101)
    expected = 1 - (1 - 0.996) * (np.cos(np.pi * steps / 100) + 1) / 2
    np.testing.assert_allclose([byol.decay(step, 100) for step in steps], expected, rtol=1e-6)


def test_unit_vectors_and_their_gradients_are_finite():
    x = jnp.array([[0.0, 0.0], [3.0, 4.0], [1e-20, 0.0]])
    np.testing.assert_allclose(byol.unit(x)[:2], [[0, 0], [0.6, 0.8]], rtol=1e-6)
    assert np.all(np.isfinite(phlox.grad(lambda x: byol.unit(x).sum())(x)))


def test_dino_loss_is_that_of_the_paper():
    student, teacher = RNG.normal(size=(4, 3, 5)).astype(np.float32), RNG.normal(size=(2, 3, 5)).astype(np.float32)
    center = RNG.normal(size=5).astype(np.float32)

    def softmax(x):
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    pairs = [(s, t) for t in range(2) for s in range(4) if s != t]
    expected = np.mean(
        [-(softmax((teacher[t] - center) / 0.07) * np.log(softmax(student[s] / 0.2))).sum(-1).mean() for s, t in pairs]
    )

    def loss(student, teacher):
        return dino.dino_loss(student, teacher, center, student_temperature=0.2, teacher_temperature=0.07)

    np.testing.assert_allclose(loss(list(student), list(teacher)), expected, rtol=1e-5)
    gradients = phlox.grad(loss, argnums=(0, 1))(list(student), list(teacher))
    assert all(np.any(x) for x in gradients[0])
    assert not any(np.any(x) for x in gradients[1])
    moved = dino.moving_center(center, list(teacher), decay=0.9)
    np.testing.assert_allclose(moved, 0.9 * center + 0.1 * teacher.reshape(-1, 5).mean(0), rtol=1e-5)


def test_scores_of_dino_are_cosines_with_the_prototypes():
    head = dino.Head(8, prototypes=20, hidden_features=16, bottleneck=4)
    params = head.init(phlox.random.key(0))
    scores = head.apply(params, jnp.asarray(RNG.normal(size=(50, 8)), jnp.float32))
    assert np.all(np.abs(scores) <= 1 + 1e-6)
    vectors = np.asarray(params["prototype_vectors"])
    scaled = params | {"prototype_vectors": vectors * np.arange(1, 21, dtype=np.float32)}
    np.testing.assert_allclose(head.apply(scaled, jnp.ones((2, 8))), head.apply(params, jnp.ones((2, 8))), rtol=1e-5)
