"""``./train --loader torch``, with the real torch."""

from example_runs import SMALL, results, run


def test_torch(tmp_path):
    words = (*SMALL, "--loader", "torch", "--out")
    run(*words, tmp_path / "a")
    run(*words, tmp_path / "b", "--checkpoint", tmp_path / "kept")
    found = results(tmp_path / "a")
    assert found == results(tmp_path / "b")
    assert found["settings"]["loader"] == "torch"
    assert found["test_accuracy"] > 0.5
