"""``./train --loader tf`` and ``--loader tfds``, with the real libraries."""

from example_runs import SMALL, results, run


def test_tf(tmp_path):
    words = (*SMALL, "--loader", "tf", "--out")
    run(*words, tmp_path / "a")
    run(*words, tmp_path / "b")
    found = results(tmp_path / "a")
    assert found == results(tmp_path / "b")
    assert found["settings"]["loader"] == "tf"
    assert found["test_accuracy"] > 0.5


def test_tfds(tmp_path):
    run(*SMALL, "--loader", "tfds", "--out", tmp_path)
    files = sorted(path for path in (tmp_path / "tfds").rglob("*") if path.is_file())
    written = [path.stat().st_mtime_ns for path in files]
    assert any("digits_0-train.array_record" in path.name for path in files)
    from_files = results(tmp_path)

    run(*SMALL, "--loader", "tfds", "--out", tmp_path)
    assert results(tmp_path) == from_files
    assert [path.stat().st_mtime_ns for path in files] == written, "prepared once"

    # Another seed splits the digits in another way, into a dataset of its own.
    run(*SMALL, "--loader", "tfds", "--seed", "1", "--out", tmp_path)
    assert (tmp_path / "tfds" / "digits_1").is_dir()

    # The same order as with plain arrays, and so the same numbers.
    run(*SMALL, "--out", tmp_path)
    assert results(tmp_path)["epochs"] == from_files["epochs"]
