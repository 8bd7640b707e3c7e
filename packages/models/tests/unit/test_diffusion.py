"""Losses and samplers of diffusion and flow matching, where the answers are known exactly."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox.errors import ArgumentError
from phlox_models import diffusion

MEAN, DEVIATION = 1.5, 0.3


@pytest.fixture(params=["linear", "cosine"])
def schedule(request):
    return {"linear": diffusion.linear_schedule, "cosine": diffusion.cosine_schedule}[request.param](50)


def test_posterior_is_bayes_rule(schedule):
    # q(x_(t-1) | x_t, x_0) is proportional to q(x_t | x_(t-1)) q(x_(t-1) | x_0): a product of two normal densities.
    rng = np.random.default_rng(0)
    data, noisy = rng.normal(size=(2, 50, 3))
    times = np.arange(50)
    betas = np.asarray(schedule.betas, np.float64)
    kept = np.cumprod(1 - betas)
    mean, variance = diffusion.posterior(schedule, jnp.asarray(data), jnp.asarray(noisy), jnp.asarray(times))
    for t in range(1, 50):
        before = kept[t - 1]
        precision = (1 - betas[t]) / betas[t] + 1 / (1 - before)
        expected = (np.sqrt(1 - betas[t]) / betas[t] * noisy[t] + np.sqrt(before) / (1 - before) * data[t]) / precision
        np.testing.assert_allclose(mean[t], expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(variance[t, 0], 1 / precision, rtol=1e-4)
    np.testing.assert_allclose(mean[0], data[0], rtol=1e-6)
    assert variance[0, 0] == 0


def test_kept_and_added_variances_do_not_lose_digits():
    schedule = diffusion.linear_schedule(1000)
    kept = np.cumprod(1 - np.linspace(1e-4, 0.02, 1000))
    np.testing.assert_allclose(schedule.kept, kept, rtol=1e-6)
    np.testing.assert_allclose(schedule.added, 1 - kept, rtol=1e-6)


def exact_noise(schedule):
    """The best prediction of the noise in normal data: the mean of the noise, given the noisy data."""

    def predict(x, times):
        kept, added = (v[times].reshape(-1, 1) for v in (schedule.kept, schedule.added))
        return jnp.sqrt(added) * (x - jnp.sqrt(kept) * MEAN) / (kept * DEVIATION**2 + added)

    return predict


@pytest.mark.parametrize("sampler", ["ddpm", "ddim"])
def test_samples_of_the_exact_predictor_have_the_data_s_moments(sampler):
    schedule = diffusion.linear_schedule(1000)
    draw = {"ddpm": diffusion.sample_ddpm, "ddim": diffusion.sample_ddim}[sampler]
    options = {} if sampler == "ddpm" else {"steps": 200}
    x = phlox.jit(lambda key: draw(exact_noise(schedule), schedule, key, (20000, 1), **options))(phlox.random.key(0))
    # Standard errors are 0.002 and 0.0015; the discretization adds less than 0.01.
    assert abs(float(x.mean()) - MEAN) < 0.015
    assert abs(float(x.std()) - DEVIATION) < 0.015


def test_one_step_of_ddpm_and_ddim_is_the_formula(schedule):
    x = phlox.random.normal(phlox.random.key(1), (4, 3))
    times = jnp.full(4, 20)
    data = diffusion.denoised(schedule, x, times, exact_noise(schedule)(x, times))
    kept = np.asarray(schedule.kept, np.float64)
    noise = (np.asarray(x) - np.sqrt(kept[20]) * np.asarray(data)) / np.sqrt(1 - kept[20])
    np.testing.assert_allclose(noise, exact_noise(schedule)(x, times), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(diffusion.add_noise(schedule, data, times, noise), x, rtol=1e-4, atol=1e-5)


def test_limit_cuts_off_the_data():
    schedule = diffusion.linear_schedule(20)
    for draw in (diffusion.sample_ddpm, diffusion.sample_ddim):
        options = {} if draw is diffusion.sample_ddpm else {"steps": 10}
        x = draw(exact_noise(schedule), schedule, phlox.random.key(0), (50, 1), limit=1.0, **options)
        assert float(jnp.abs(x).max()) <= 1


def test_diffusion_loss_is_least_for_the_exact_predictor():
    schedule = diffusion.linear_schedule(100)
    data = MEAN + DEVIATION * phlox.random.normal(phlox.random.key(0), (20000, 1))
    best = exact_noise(schedule)
    key = phlox.random.key(1)
    least = float(diffusion.diffusion_loss(best, schedule, data, key))
    kept, added = np.asarray(schedule.kept), np.asarray(schedule.added)
    # The variance of the noise, given the noisy data, in the mean over all times.
    expected = np.mean(kept * DEVIATION**2 / (kept * DEVIATION**2 + added))
    assert abs(least - expected) < 0.02
    for factor in (0.9, 1.1):
        assert float(diffusion.diffusion_loss(lambda x, t: factor * best(x, t), schedule, data, key)) > least


def velocity(x, times):
    """The exact velocity of the flow from normal numbers to normal data, along straight lines."""
    t = times[:, None]
    variance = (1 - t) ** 2 + (t * DEVIATION) ** 2
    return MEAN + (t * DEVIATION**2 - (1 - t)) / variance * (x - t * MEAN)


@pytest.mark.parametrize("method", ["euler", "midpoint"])
def test_flow_maps_noise_to_the_exact_normal_data(method):
    # Along this flow x_t = t mean + noise sqrt((1 - t)^2 + t^2 deviation^2), at the end x = mean + deviation noise.
    noise = phlox.random.normal(phlox.random.key(0), (100, 1))
    x = diffusion.sample_flow(velocity, noise, 80, method=method)
    np.testing.assert_allclose(x, MEAN + DEVIATION * noise, atol={"euler": 0.1, "midpoint": 1e-3}[method])
    reference = np.asarray(noise, np.float64)
    for n in range(80):
        slope = velocity(reference, np.full(100, n / 80))
        if method == "midpoint":
            slope = velocity(reference + slope / 160, np.full(100, (n + 0.5) / 80))
        reference = reference + slope / 80
    np.testing.assert_allclose(x, reference, rtol=1e-4, atol=1e-5)


def test_flow_loss_is_least_for_the_exact_velocity():
    data = MEAN + DEVIATION * phlox.random.normal(phlox.random.key(0), (20000, 1))
    key = phlox.random.key(1)
    least = float(diffusion.flow_loss(velocity, data, key))
    t = np.linspace(0, 1, 1001)
    # The variance of data - noise, given the point between them, in the mean over all times.
    expected = np.mean(DEVIATION**2 / ((1 - t) ** 2 + (t * DEVIATION) ** 2))
    assert abs(least - expected) < 0.05 * expected
    for factor in (0.9, 1.1):
        assert float(diffusion.flow_loss(lambda x, t: factor * velocity(x, t), data, key)) > least


def test_wrong_options_are_told():
    schedule = diffusion.linear_schedule(10)
    for steps in (0, 11):
        with pytest.raises(ArgumentError, match="steps must be from 1 to 10"):
            diffusion.sample_ddim(exact_noise(schedule), schedule, phlox.random.key(0), (1, 1), steps=steps)
    with pytest.raises(ArgumentError, match="method='heun'"):
        diffusion.sample_flow(velocity, jnp.zeros((1, 1)), method="heun")
    with pytest.raises(ArgumentError, match="steps=0"):
        diffusion.sample_flow(velocity, jnp.zeros((1, 1)), 0)
