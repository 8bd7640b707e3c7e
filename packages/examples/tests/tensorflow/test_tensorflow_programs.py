"""The programs that use TensorFlow, in small."""

import pytest

from example_runs import check_quick_run, programs


@pytest.mark.parametrize("name", programs("tensorflow"))
def test_a_quick_run(name, tmp_path, capsys):
    check_quick_run(name, tmp_path, capsys)
