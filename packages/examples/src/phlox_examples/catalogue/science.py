"""The programs that compute: physics, statistics and mathematics."""

from __future__ import annotations

import argparse

from .rows import Option, Program, positive, whole


def _uneven_users(options: argparse.Namespace) -> str | None:
    if options.users % options.devices:
        return f"--users {options.users} cannot be split evenly over {options.devices} devices"
    return None


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
    Program(
        "hydrogen-molecule",
        "two electrons around two protons: bond, force and vibration by derivatives",
        20,
        (Option("--points", whole(10), 160, "distances of the curves", 40),),
        ("hartree-fock", "full-ci"),
    ),
    Program(
        "quantum-circuit",
        "a variational circuit finds the ground state of a ring of qubits, its angles by grad",
        15,
        (
            Option("--qubits", whole(3, 12), 8, "of the ring", 4),
            Option("--field", positive, 1.0, "across the ring", metavar="NUMBER"),
            Option("--starts", whole(1), 8, "of the search, side by side", 4),
            Option("--steps", whole(1), 1000, "of Adam", 200),
        ),
        ("exact", "energies", "fidelities"),
    ),
    Program(
        "shallow-water",
        "currents of an ocean break into eddies; mass and energy are conserved",
        15,
        (
            Option("--points", whole(32), 128, "of the grid along each side", 48),
            Option("--days", positive, 28.0, "that pass", 4.0, metavar="DAYS"),
        ),
        ("wave_speed", "known_speed", "energy_error", "mass_error", "largest_spin"),
    ),
    Program(
        "rigid-body",
        "boxes collide, pile up and slide: contact forces by the gradient of an energy",
        12,
        (
            Option("--boxes", whole(2, 40), 16, "of the pile", 4),
            Option("--frames", whole(20), 120, "of 25 milliseconds, twice as many of the pile", 80),
        ),
        ("energy_error", "momentum_error", "floor", "slopes"),
    ),
    Program(
        "bilevel",
        "which examples to trust: the gradient through a training finds wrong labels",
        30,
        (
            Option("--doubtful", whole(20, 1000), 600, "examples, half of them with wrong labels", 100),
            Option("--checked", whole(20, 400), 120, "examples whose labels are right", 60),
            Option("--steps", whole(1), 60, "of Adam; each trains a network", 5),
            Option("--rate", positive, 0.3, "of Adam", metavar="RATE"),
        ),
        ("losses", "share_found", "accuracy_before", "test_accuracy", "accuracy_checked_only"),
    ),
    Program(
        "protein-folding",
        "a chain of beads folds to two helices; hot, it unfolds",
        80,
        (
            Option("--chains", whole(1), 4, "at each of 8 temperatures", 1),
            Option("--steps", whole(1), 500, "between two of the 60 frames", 20),
        ),
        ("temperatures", "folded", "distance", "heat"),
    ),
    Program(
        "matrix-factorization",
        "taste from few ratings, by least squares over devices: the same on 1 and on 8",
        10,
        (
            Option("--devices", whole(1), 8, "how many; virtual ones on a CPU", 2),
            Option("--users", whole(8), 800, "rows of the table", 64),
            Option("--items", whole(8), 400, "columns of the table", 48),
            Option("--rank", whole(1), 5, "dimensions of taste", 2),
            Option("--rounds", whole(1), 20, "of users and items", 8),
        ),
        ("losses", "test_error", "expected_error", "largest_difference"),
        refuses=_uneven_users,
    ),
)
