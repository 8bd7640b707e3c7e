"""The programs that compute: physics, statistics and mathematics."""

from __future__ import annotations

from .rows import Option, Program, positive, whole

PROGRAMS = (
    Program(
        "logistic-newton",
        "Newton's method by hessian and by Hessian-vector products doubles its digits in each step",
        2,
        (
            Option("--steps", whole(8), 20, "of each method", 9),
            Option("--decay", positive, 0.001, "weight of the squared weights in the loss", metavar="NUMBER"),
        ),
        ("errors", "order", "gradient_norm", "test_accuracy"),
    ),
    Program(
        "gaussian-process",
        "a curve with error bars; its seven hyperparameters by the gradient of the marginal likelihood",
        8,
        (
            Option("--points", whole(10), 120, "how many are measured", 40),
            Option("--steps", whole(50), 600, "of Adam", 50),
        ),
        ("numbers", "log_probability", "inside_band"),
    ),
    Program(
        "hmc",
        "Hamiltonian Monte Carlo with vmap over chains draws from a banana; R-hat and effective sample size",
        4,
        (
            Option("--chains", whole(4), 64, "that run side by side", 8),
            Option("--draws", whole(100), 1000, "of each chain, after the first fifth more", 200),
            Option("--flight", whole(1), 16, "leapfrog steps of a flight"),
            Option("--step-size", positive, 0.3, "of the leapfrog rule", metavar="SIZE"),
        ),
        ("accepted", "mean", "variance", "r_hat", "effective"),
    ),
)
