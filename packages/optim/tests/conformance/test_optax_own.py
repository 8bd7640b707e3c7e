"""Optax's own test files on phlox: those that take seconds. ``optax_own.py`` runs all and compares them with jax."""

import pytest

import optax_own

#: the files that take longer than about five seconds, and one that nothing here can run
SLOW = {
    "_src/alias_test", "_src/linesearch_test", "_src/numerics_test", "assignment/_hungarian_algorithm_test",
    "contrib/_common_test", "contrib/_galore_test", "contrib/_muon_test", "contrib/_sam_test",
    "experimental/_aggregating_test", "losses/_classification_test", "losses/_segmentation_test",
    "perturbations/_make_pert_test",
}  # fmt: skip
#: these give modules of flax, which compute with jax, to optax
USE_FLAX = {"_src/linear_algebra_test", "transforms/_accumulation_test"}
#: what fails on jax 0.10.2 in the same way: a mean that is one unit in the last place off, and words of older errors
FAIL_ON_JAX = {
    "ClippingTest.test_clip_by_block_rms",
    "FreezeTest.test_bad_structure_raises",
    "SelectiveTransformTest.test_selective_bad_structure",
}
FILES = sorted({*optax_own.all_files()} - SLOW - USE_FLAX)


def test_the_lists_name_files_that_are_there():
    assert set(optax_own.all_files()) >= SLOW | USE_FLAX


@pytest.mark.filterwarnings("ignore")  # optax's tests of its deprecated functions
@pytest.mark.parametrize("file", FILES)
def test_file(file):
    outcomes, failures = optax_own.run(file)
    lost = [f"{name}\n{text}" for name, text in failures.items() if name not in FAIL_ON_JAX]
    assert not lost, "\n".join(lost)
    assert "passed" in outcomes.values()
