"""The programs that compute: physics, statistics and mathematics."""

from __future__ import annotations

from .rows import Option, Program, positive, whole

PROGRAMS = (
    Program(
        "logistic-newton",
        "Newton's method by hessian and by jvp of grad doubles its digits in each step",
        4,
        (
            Option("--steps", whole(8), 20, "of each method", 9),
            Option("--decay", positive, 0.001, "weight of the squared weights in the loss", metavar="NUMBER"),
        ),
        ("errors", "order", "gradient_norm", "test_accuracy"),
    ),
    Program(
        "gaussian-process",
        "a curve with error bars, its hyperparameters by the gradient of the likelihood",
        8,
        (
            Option("--points", whole(10), 120, "how many are measured", 40),
            Option("--steps", whole(50), 300, "of Adam", 50),
        ),
        ("numbers", "log_probability", "inside_band"),
    ),
    Program(
        "hmc",
        "many chains draw from a banana by vmap; R-hat and effective sample size",
        3,
        (
            Option("--chains", whole(4), 64, "that run side by side", 8),
            Option("--draws", whole(100), 1000, "of each chain, after the first fifth more", 200),
            Option("--flight", whole(1), 24, "leapfrog steps of a flight"),
            Option("--step-size", positive, 0.12, "of the leapfrog rule", metavar="SIZE"),
        ),
        ("accepted", "mean", "variance", "r_hat", "effective"),
    ),
    Program(
        "n-body",
        "two galaxies pass each other; leapfrog keeps the energy where Runge-Kutta drifts",
        20,
        (
            Option("--stars", whole(1), 500, "in each galaxy", 20),
            Option("--steps", whole(1), 20, "between two of the 45 frames", 4),
        ),
        ("largest_energy_error", "energies", "planet_errors"),
    ),
    Program(
        "molecular-dynamics",
        "liquid argon: forces by grad of the energy, which is conserved; neighbours in shells",
        20,
        (
            Option("--cells", whole(3), 5, "of the crystal along each side, with 4 atoms each", 3),
            Option("--steps", whole(150), 3000, "in which the atoms are left alone", 150),
        ),
        ("temperature", "energy_drift", "peak", "r", "g"),
    ),
    Program(
        "mandelbrot",
        "the Mandelbrot set by jvp of a while_loop, and its area beside the known one",
        9,
        (
            Option("--height", whole(8), 600, "of the pictures, in pixels", 48),
            Option("--limit", whole(1), 1000, "steps after which a point counts as in the set", 100),
        ),
        ("area", "known_area"),
    ),
    Program(
        "neural-ode",
        "the law of a pendulum is learnt from noisy swings, by gradients through the solver",
        10,
        (Option("--steps", whole(50), 2000, "of Adam", 100),),
        ("losses", "error"),
    ),
    Program(
        "double-slit",
        "a wave packet of quantum mechanics passes two slits; its stripes are measured",
        4,
        (
            Option("--points", whole(60), 480, "of the grid along the wall", 120),
            Option("--steps", whole(1), 16, "between two of the 48 frames", 4),
        ),
        ("dark", "apart", "expected", "norms", "hits"),
    ),
    Program(
        "fluid",
        "smoke becomes a letter: how to stir a fluid, by the gradient through its flow",
        12,
        (
            Option("--points", whole(16), 64, "of the grid along each side", 32),
            Option("--steps", whole(10), 300, "of Adam", 20),
        ),
        ("losses",),
    ),
)
