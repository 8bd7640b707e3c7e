"""The programs that compute, run twice: with phlox, and with the same text on jax (on_jax.py).

Both runs are those of --quick. What comes out must be equal up to rounding; in so few steps chaos has not yet made much
of it.
"""

import jax
import numpy as np
import pytest

from on_jax import leaves, program as module
from phlox_examples.catalogue import science
from phlox_examples.options import parse

#: By how much results may differ, relative to the largest element of each: the rounding of 64 or of 32 bits, times
#: what the steps of a training or of a flight make of it.
TOLERANCE = {
    "logistic-newton": 1e-10,
    "gaussian-process": 1e-8,
    "hmc": 1e-4,
    "n-body": 1e-6,  # the last bit of the starting places moves a velocity by 5e-7
    "molecular-dynamics": 1e-8,
    "mandelbrot": 1e-10,
    "neural-ode": 1e-4,
    "double-slit": 2e-5,
    "fluid": 1e-4,
    "hydrogen-molecule": 1e-8,
    "quantum-circuit": 1e-8,
    "shallow-water": 1e-8,
    "rigid-body": 1e-6,
    "bilevel": 1e-8,
    "protein-folding": 1e-6,
    "matrix-factorization": 1e-8,
}


@pytest.mark.parametrize("program", sorted(TOLERANCE))
def test_a_program_finds_on_jax_what_it_finds_on_phlox(program):
    options = parse([program, "--quick"])
    ours, theirs = (dict(leaves(module(program, on_jax).compute(options))) for on_jax in (False, True))
    assert list(ours) == list(theirs)
    for path, expected in theirs.items():
        found, expected = np.asarray(ours[path]), np.asarray(expected)
        assert found.shape == expected.shape and found.dtype == expected.dtype, path
        finite = np.isfinite(expected)
        np.testing.assert_array_equal(np.isfinite(found), finite, err_msg=path)
        found, expected = np.where(finite, found, 0), np.where(finite, expected, 0)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE[program] * scale + 1e-14, err_msg=path)


def test_every_program_is_compared():
    assert sorted(TOLERANCE) == sorted(program.name for program in science.PROGRAMS)


def test_the_second_run_is_one_of_jax():
    found = module("mandelbrot", on_jax=True)
    assert found.jax is jax and not hasattr(found, "phlox")
    assert isinstance(found.escape(0.5 + 0j, 10)[0], jax.Array)
