"""The programs that train networks, run twice: with phlox, and with the same text on jax. Both write the same numbers.

That with TensorFlow is in tests/tensorflow. Beside these, test_programs_on_jax.py has some of the networks written by
hand in jax, so that they are judged by more than the text of phlox_nn.
"""

import jax
import pytest

import on_jax
from phlox_examples.catalogue import training

NAMES = [program.name for program in training.PROGRAMS if "tensorflow" not in program.needs]


@pytest.mark.parametrize("name", NAMES)
def test_a_program_writes_the_numbers_of_jax(name, tmp_path):
    on_jax.check_training(name, tmp_path)


def test_the_second_run_is_one_of_jax():
    found = on_jax.program("vit", on_jax=True)
    assert found.jax is jax and not [name for name in ("phlox", "phlox_nn", "phlox_data") if hasattr(found, name)]
    params = found.model.init(jax.random.key(0))
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(params))
