"""The programs that use TensorFlow, in small, and beside the same programs on jax."""

import pytest

import on_jax
from example_runs import check_quick_run, programs


@pytest.mark.parametrize("name", programs("tensorflow"))
def test_a_quick_run(name, tmp_path, capsys):
    check_quick_run(name, tmp_path, capsys)


@pytest.mark.parametrize("name", programs("tensorflow"))
def test_a_program_writes_the_numbers_of_jax(name, tmp_path):
    on_jax.check_training(name, tmp_path)
