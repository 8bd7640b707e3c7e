"""No public function of what only ported programs use is forgotten: a test names each. Signatures are jax's."""

import pytest

from conformance import (
    test_api_util,
    test_example_optimizers,
    test_experimental_rnn,
    test_former_experimental,
    test_stax,
)
from conformance.coverage import differing_signatures, not_named

MODULES = {
    "api_util": test_api_util,
    "example_libraries.optimizers": test_example_optimizers,
    "example_libraries.stax": test_stax,
    "experimental.buffer_callback": test_former_experimental,
    "experimental.mesh_utils": test_former_experimental,
    "experimental.rnn": test_experimental_rnn,
}
#: Names that say nothing of values: annotations, and what functions get.
NO_VALUES = {"Initializer", "Optimizer", "OptimizerState", "Schedule", "Buffer", "ExecutionContext", "ExecutionStage"}


@pytest.mark.whole
@pytest.mark.parametrize("path", MODULES)
def test_every_function_is_compared(path):
    missing = set(not_named(path, [MODULES[path]])) - NO_VALUES
    assert not missing, f"no test compares {', '.join(sorted(missing))} of {path}"


@pytest.mark.whole
@pytest.mark.parametrize("path", MODULES)
def test_signatures(path):
    wrong = differing_signatures(path)
    assert not wrong, f"{len(wrong)} of {path}: " + "; ".join(wrong)
