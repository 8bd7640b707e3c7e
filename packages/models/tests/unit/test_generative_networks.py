"""U-Net and VAE: shapes, what they begin as, learning, and their folders."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
import phlox_models
from phlox_models import diffusion
from phlox_models.vae import VAEOutput, elbo_loss

UNET = {"model_type": "unet", "features": 8, "factors": [1, 2], "blocks": 1, "groups": 4, "channels": 1}
VAE = {"model_type": "vae", "features": 8, "latents": 2, "groups": 4, "channels": 1}
IMAGES = np.random.default_rng(0).normal(size=(4, 8, 8, 1)).astype(np.float32)


def randomized(model):
    """Parameters without the zeros that the last convolutions begin with."""
    params = model.init(phlox.random.key(0))
    leaves, tree = phlox.tree.flatten(params)
    keys = phlox.random.split(phlox.random.key(1), len(leaves))
    return tree.unflatten([0.3 * phlox.random.normal(k, x.shape) for k, x in zip(keys, leaves, strict=True)])


@pytest.mark.parametrize("size", [(8, 8), (7, 9), (5, 6)])
@pytest.mark.parametrize("change", [{}, {"attention": []}, {"factors": [1, 1, 2], "blocks": 2, "attention": [0, 2]}])
def test_a_unet_keeps_the_shape_of_images_of_any_size(size, change):
    model = phlox_models.build(UNET | change)
    images = jnp.ones((2, *size, 1))
    out = phlox.eval_shape(lambda key: model.apply(model.init(key), images, jnp.zeros(2)), phlox.random.key(0))
    assert out.shape == images.shape


def test_a_unet_begins_with_zeros_and_depends_on_images_times_and_labels():
    model = phlox_models.build(UNET | {"classes": 3})
    apply = phlox.jit(model.apply)
    times, labels = jnp.array([0, 1, 5, 900]), jnp.array([0, 1, 2, 0])
    assert not np.any(apply(model.init(phlox.random.key(0)), IMAGES, times, labels))
    params = randomized(model)
    first = apply(params, IMAGES, times, labels)
    for other in ((IMAGES + 1, times, labels), (IMAGES, times + 1, labels), (IMAGES, times, (labels + 1) % 3)):
        assert np.abs(apply(params, *other) - first).max() > 1e-3
    # Examples do not see each other.
    np.testing.assert_allclose(
        apply(params, IMAGES[::-1], times[::-1], labels[::-1])[::-1], first, rtol=1e-3, atol=1e-4
    )


def test_time_scale_multiplies_the_times():
    params = randomized(phlox_models.build(UNET))
    a = phlox_models.build(UNET).apply(params, IMAGES, jnp.full(4, 500.0))
    b = phlox_models.build(UNET | {"time_scale": 1000.0}).apply(params, IMAGES, jnp.full(4, 0.5))
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def train(model, loss, steps, rate):
    params = model.init(phlox.random.key(0))

    @phlox.jit
    def step(params, key):
        value, gradients = phlox.value_and_grad(loss)(params, key)
        return value, phlox.tree.map(lambda p, g: p - rate * g, params, gradients)

    losses = []
    for n in range(steps):
        value, params = step(params, phlox.random.key(n))
        losses.append(float(value))
    return params, losses


def test_a_unet_learns_to_predict_noise_and_samples():
    model, schedule = phlox_models.build(UNET | {"attention": []}), diffusion.cosine_schedule(20)

    def loss(params, key):
        return diffusion.diffusion_loss(lambda x, t: model.apply(params, x, t), schedule, jnp.zeros((16, 4, 4, 1)), key)

    params, losses = train(model, loss, 60, 0.1)
    assert np.mean(losses[-10:]) < 0.6 * np.mean(losses[:5])
    x = diffusion.sample_ddim(lambda x, t: model.apply(params, x, t), schedule, phlox.random.key(0), (3, 4, 4, 1), 5)
    assert x.shape == (3, 4, 4, 1)
    assert np.all(np.isfinite(x))


def test_a_vae_learns_and_draws_only_in_training():
    model = phlox_models.build(VAE)

    def loss(params, key):
        return elbo_loss(model.apply(params, IMAGES, key=key, train=True), IMAGES)

    params, losses = train(model, loss, 30, 0.001)
    assert losses[-1] < 0.95 * losses[0]
    out = model.apply(params, IMAGES)
    np.testing.assert_array_equal(model.apply(params, out.mean, method="decode"), out.images)
    drawn = [model.apply(params, IMAGES, key=phlox.random.key(n), train=True).images for n in (0, 1)]
    assert np.any(drawn[0] != drawn[1])


def test_the_loss_of_a_vae_is_the_evidence_lower_bound():
    rng = np.random.default_rng(0)
    images, target = rng.normal(size=(2, 3, 4, 4, 1))
    mean, log_variance = rng.normal(size=(2, 3, 2, 2, 2))
    divergence = 0.5 * (mean**2 + np.exp(log_variance) - 1 - log_variance).reshape(3, -1).sum(1)
    error = 0.5 * ((images - target) ** 2).reshape(3, -1).sum(1)
    out = VAEOutput(*(jnp.asarray(x, jnp.float32) for x in (images, mean, log_variance)))
    for beta in (1.0, 4.0):
        np.testing.assert_allclose(elbo_loss(out, target, beta=beta), np.mean(error + beta * divergence), rtol=1e-5)


@pytest.mark.parametrize("config", [UNET, VAE], ids=["unet", "vae"])
def test_folders_give_the_same_model_back(tmp_path, config):
    model = phlox_models.build(config)
    params = randomized(model)
    phlox_models.save(tmp_path, model, params)
    again, loaded = phlox_models.load(tmp_path)
    assert again == model
    phlox.tree.map(np.testing.assert_array_equal, params, loaded)
