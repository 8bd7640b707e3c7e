"""Programs of scientists, as they are written for JAX: each runs with both libraries and gives the same numbers.

A program takes the library, and nothing else of it is known here. Where the numbers are known from elsewhere (a period,
a solution in closed form, SciPy), they are compared with that too.
"""

import jax
import jax.experimental.ode
import jax.scipy.optimize
import jax.scipy.sparse.linalg
import numpy as np
import pytest
import scipy.signal

import phlox
import phlox.experimental.ode
import phlox.scipy.optimize
import phlox.scipy.sparse.linalg
from conformance.harness import agree, outcome, row

PICTURE = np.random.default_rng(0).uniform(size=(24, 32)).astype(np.float32)
SAMPLES = 1024
TIMES = np.arange(SAMPLES, dtype=np.float32) / 256
SIGNAL = np.sin(2 * np.pi * 50 * TIMES) + 0.3 * np.random.default_rng(1).normal(size=SAMPLES).astype(np.float32)
XS = np.linspace(-2, 2, 15, dtype=np.float32)
YS = np.sin(2 * XS) + 0.1 * np.random.default_rng(2).normal(size=15).astype(np.float32)
TRACK = np.cumsum(np.random.default_rng(3).normal(size=(40, 2)), 0).astype(np.float32)
POINTS = np.concatenate(
    [np.random.default_rng(4).normal(-2, 0.5, (60, 2)), np.random.default_rng(5).normal(1.5, 0.8, (80, 2))]
).astype(np.float32)


def edges(m):
    """An image filter: smoothing by a Gaussian, then the magnitude of the gradient; and its derivative."""
    jnp, convolve2d = m.numpy, m.scipy.signal.convolve2d
    at = jnp.arange(-2, 3)
    gauss = m.scipy.stats.norm.pdf(at)
    kernel = jnp.outer(gauss, gauss) / gauss.sum() ** 2
    sobel = jnp.array([[1.0, 0.0, -1.0], [2.0, 0.0, -2.0], [1.0, 0.0, -1.0]])

    @m.jit
    def strength(image):
        smooth = convolve2d(image, kernel, mode="same")
        across, down = (convolve2d(smooth, one, mode="valid") for one in (sobel, sobel.T))
        return jnp.sqrt(across**2 + down**2 + 1e-6)

    image = jnp.asarray(PICTURE)
    return strength(image), m.grad(lambda x: strength(x).mean())(image)


def spectrum(m):
    """The power spectrum of a noisy tone, from which its frequency is read; and how the power depends on the signal."""
    jnp = m.numpy

    @m.jit
    def density(signal):
        return m.scipy.signal.welch(signal, fs=256.0, nperseg=128, noverlap=64, detrend="constant")

    frequencies, power = density(jnp.asarray(SIGNAL))
    slope = m.grad(lambda s: jnp.log(density(s)[1][25]))(jnp.asarray(SIGNAL))
    return frequencies, power, frequencies[jnp.argmax(power)], slope


def gaussian_process(m):
    """Regression by a Gaussian process, whose parameters maximize the likelihood."""
    jnp, linalg = m.numpy, m.scipy.linalg
    x, y = jnp.asarray(XS), jnp.asarray(YS)

    def kernel(log_parameters, a, b):
        scale, length = jnp.exp(log_parameters[:2])
        return scale**2 * jnp.exp(-0.5 * ((a[:, None] - b[None, :]) / length) ** 2)

    def factor(p):
        noise = jnp.exp(2 * p[2]) + 1e-5
        return linalg.cho_factor(kernel(p, x, x) + noise * jnp.eye(x.size), lower=True)

    def loss(p):
        triangle, lower = factor(p)
        fit = 0.5 * y @ linalg.cho_solve((triangle, lower), y)
        return fit + jnp.log(jnp.diag(triangle)).sum() + 0.5 * x.size * jnp.log(2 * jnp.pi)

    @m.jit
    def trained(start):
        return m.scipy.optimize.minimize(loss, start, method="BFGS", options={"maxiter": 40})

    found = trained(jnp.array([0.0, 0.0, -1.0]))
    at = jnp.linspace(-2.5, 2.5, 7)
    crossed = kernel(found.x, at, x)
    decomposed = factor(found.x)
    mean = crossed @ linalg.cho_solve(decomposed, y)
    covariance = kernel(found.x, at, at) - crossed @ linalg.cho_solve(decomposed, crossed.T)
    return found.x, found.fun, mean, jnp.sqrt(jnp.diag(covariance))


def kalman(m):
    """Filtering a track of positions with a model of constant velocity, by scan; and the fit of the noise by gradient."""
    jnp = m.numpy
    step = jnp.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    seen = jnp.eye(2, 4)

    def filtered(log_noise, positions):
        process, measured = jnp.exp(log_noise)

        def update(carry, position):
            mean, covariance = carry
            mean = step @ mean
            covariance = step @ covariance @ step.T + process * jnp.eye(4)
            innovation = seen @ covariance @ seen.T + measured * jnp.eye(2)
            gain = m.scipy.linalg.solve(innovation, seen @ covariance, assume_a="pos").T
            logpdf = m.scipy.stats.multivariate_normal.logpdf(position, seen @ mean, innovation)
            mean = mean + gain @ (position - seen @ mean)
            covariance = covariance - gain @ seen @ covariance
            return (mean, covariance), (mean, logpdf)

        return m.lax.scan(update, (jnp.zeros(4), 10 * jnp.eye(4)), positions)[1]

    def loss(log_noise):
        return -filtered(log_noise, jnp.asarray(TRACK))[1].sum()

    noise = jnp.zeros(2)
    descend = m.jit(lambda noise: noise - 0.005 * m.grad(loss)(noise))
    for _ in range(5):
        noise = descend(noise)
    return noise, filtered(noise, jnp.asarray(TRACK))


def orbit(m):
    """A planet on an ellipse for one period; and how the end depends on the speed at the start."""
    jnp = m.numpy

    def motion(state, time):
        place, speed = state
        return speed, -place / jnp.sum(place**2) ** 1.5

    @m.jit
    def flight(speed):
        start = jnp.array([1.0, 0.0]), jnp.stack([jnp.zeros_like(speed), speed])
        axis = 1 / (2 - speed**2)
        times = jnp.linspace(0.0, 1.0, 5) * (2 * jnp.pi * axis**1.5)
        return m.experimental.ode.odeint(motion, start, times, rtol=1e-6, atol=1e-6)

    speed = jnp.float32(1.1)
    places, speeds = flight(speed)
    energy = 0.5 * (speeds**2).sum(1) - 1 / jnp.sqrt((places**2).sum(1))
    return places, energy, m.jit(m.grad(lambda v: flight(v)[0][2, 0]))(speed)


def poisson(m):
    """The Poisson equation on a square by conjugate gradients, with a matrix that is only a function; and its gradient."""
    jnp = m.numpy
    n = 12
    at = jnp.arange(1, n + 1) / (n + 1)
    force = jnp.outer(jnp.sin(jnp.pi * at), jnp.sin(jnp.pi * at))

    def laplacian(u):
        wide = jnp.pad(u, 1)
        neighbours = wide[2:, 1:-1] + wide[:-2, 1:-1] + wide[1:-1, 2:] + wide[1:-1, :-2]
        return (4 * u - neighbours) * (n + 1) ** 2

    @m.jit
    def solved(f):
        return m.scipy.sparse.linalg.cg(laplacian, f, tol=1e-6, M=lambda u: u / (4 * (n + 1) ** 2))[0]

    return solved(force), m.grad(lambda f: solved(f)[3, 4])(force)


def mixture(m):
    """A mixture of two normal distributions, fitted by expectation and maximization."""
    jnp = m.numpy
    points = jnp.asarray(POINTS)

    def log_joint(weights, means, scales):
        each = m.scipy.stats.norm.logpdf(points[:, None], means, scales[:, None]).sum(-1)
        return jnp.log(weights) + each

    @m.jit
    def improved(carry, _):
        joint = log_joint(*carry)
        evidence = m.scipy.special.logsumexp(joint, axis=1, keepdims=True)
        share = jnp.exp(joint - evidence)
        total = share.sum(0)
        means = share.T @ points / total[:, None]
        spread = (share[..., None] * (points[:, None] - means) ** 2).sum(0).mean(-1) / total
        return (total / len(points), means, jnp.sqrt(spread)), evidence.sum()

    start = jnp.array([0.5, 0.5]), jnp.array([[-1.0, 0.0], [1.0, 0.0]]), jnp.ones(2)
    (weights, means, scales), history = m.lax.scan(improved, start, None, length=15)
    return weights, means, scales, history, jnp.argmax(log_joint(weights, means, scales), 1)


#: the tolerance: that of float32 for short computations, more where rounding is amplified by many steps
PROGRAMS = {
    edges: 2e-5,
    spectrum: 2e-4,
    gaussian_process: 5e-3,
    kalman: 2e-4,
    orbit: 2e-3,
    poisson: 2e-4,
    mixture: 2e-4,
}


@pytest.mark.whole
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program(program):
    near = row("programs", tolerance=PROGRAMS[program])
    agree(outcome(program, phlox, ()), outcome(program, jax, ()), near, "")


@pytest.mark.whole
def test_programs_in_64_bits():
    """Where rounding is small, nothing else may differ."""
    for program in (edges, kalman, poisson, mixture):
        with phlox.enable_x64(True), jax.enable_x64(True):
            agree(outcome(program, phlox, ()), outcome(program, jax, ()), row("programs", tolerance=1e-5), "")


def test_what_is_known_from_elsewhere():
    frequencies, power, peak, _ = spectrum(phlox)
    known = scipy.signal.welch(SIGNAL, fs=256.0, nperseg=128, noverlap=64, detrend="constant")
    np.testing.assert_allclose(frequencies, known[0], rtol=1e-6)
    np.testing.assert_allclose(power, known[1], rtol=1e-3, atol=1e-7)
    assert abs(float(peak) - 50) <= 1
    places, energy, _ = orbit(phlox)
    np.testing.assert_allclose(places[-1], places[0], atol=1e-3)
    np.testing.assert_allclose(energy, energy[0], atol=1e-4)
    solution, influence = poisson(phlox)
    eigenvalue = 8 * 13**2 * np.sin(np.pi / 26) ** 2
    at = np.sin(np.pi * np.arange(1, 13) / 13)
    np.testing.assert_allclose(solution, np.outer(at, at) / eigenvalue, rtol=1e-4)
    np.testing.assert_allclose((influence * np.outer(at, at)).sum(), solution[3, 4], rtol=1e-3)
    weights, means, *_ = mixture(phlox)
    np.testing.assert_allclose(weights, [60 / 140, 80 / 140], atol=0.02)
    np.testing.assert_allclose(means, [[-2, -2], [1.5, 1.5]], atol=0.2)
