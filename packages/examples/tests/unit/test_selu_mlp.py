"""The first program, in small: what it writes, how it goes on after a stop, and what it refuses."""

import sys

import numpy as np
import pytest

from example_runs import SMALL, results, run, size_of_png
from phlox_examples import selu_mlp


def test_results(tmp_path, capsys):
    run("selu-mlp", *SMALL, "--out", tmp_path / "new" / "folder")
    out, err = capsys.readouterr()
    assert err == ""
    table = [line.split() for line in out.splitlines()[1:4]]
    found = results(tmp_path / "new" / "folder")
    assert found["program"] == "selu-mlp"
    assert found["settings"] == {
        "seed": 0, "widths": [16], "epochs": 3, "batch_size": 64, "learning_rate": 0.002, "loader": "numpy"
    }  # fmt: skip
    assert [row["epoch"] for row in found["epochs"]] == [1, 2, 3]
    for row, shown in zip(found["epochs"], table, strict=True):
        assert shown == [
            str(row["epoch"]), f"{row['loss']:.4f}", f"{row['test_loss']:.4f}", f"{row['test_accuracy']:.2%}"
        ]  # fmt: skip
    assert found["epochs"][-1]["loss"] < found["epochs"][0]["loss"]
    assert found["test_accuracy"] == found["epochs"][-1]["test_accuracy"] > 0.5
    width, height = size_of_png(tmp_path / "new" / "folder" / "selu-mlp.png")
    assert 1000 < width < 3000 and 500 < height < 2000
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == ["selu-mlp.json", "selu-mlp.png"]


def test_the_seed_decides_everything(tmp_path):
    for name, seed in [("a", 5), ("b", 5), ("c", 6)]:
        run(*SMALL, "--seed", seed, "--out", tmp_path / name)
    assert results(tmp_path / "a") == results(tmp_path / "b")
    assert results(tmp_path / "a")["epochs"] != results(tmp_path / "c")["epochs"]


def test_a_stopped_training_goes_on_exactly(tmp_path, monkeypatch, capsys):
    train_epoch = selu_mlp.train_epoch

    def stopped_in_epoch(number):
        """As by Ctrl-C, in the middle of the epoch that is the n-th of this run."""
        begun = iter(range(1, 100))

        def stand_in(step, state, batches):
            if next(begun) < number:
                return train_epoch(step, state, batches)
            next(iter(batches))
            raise KeyboardInterrupt

        return stand_in

    run(*SMALL, "--out", tmp_path / "whole")
    kept = (*SMALL, "--checkpoint", tmp_path / "kept", "--out", tmp_path / "parts")
    for number in (1, 3):
        monkeypatch.setattr(selu_mlp, "train_epoch", stopped_in_epoch(number))
        capsys.readouterr()
        run(*kept, status=130)
        assert capsys.readouterr().err == "./train: stopped by Ctrl-C\n"
    monkeypatch.setattr(selu_mlp, "train_epoch", train_epoch)
    run(*kept)
    out, _ = capsys.readouterr()
    assert out.startswith("Epochs 1 to 2 are in ")
    assert results(tmp_path / "parts") == results(tmp_path / "whole")

    # Once more: nothing is left to train, and the results are the same.
    run(*kept, "--out", tmp_path / "again")
    assert results(tmp_path / "again") == results(tmp_path / "whole")


def test_a_checkpoint_of_another_training_is_refused(tmp_path, capsys):
    words = ("--widths", "8", "--epochs", "1", "--out", tmp_path, "--checkpoint", tmp_path / "kept")
    run(*words)
    for other in (["--seed", "1"], ["--widths", "9"], ["--epochs", "2"], ["--batch-size", "32"]):
        capsys.readouterr()
        run(*words, *other, status=2)
        name = other[0].removeprefix("--").replace("-", "_")
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"./train: --checkpoint {tmp_path / 'kept'} belongs to a training with {name} ")
        assert err.count("\n") == 1
    (tmp_path / "kept" / "settings.json").write_text("{")
    run(*words, status=2)
    assert "settings.json cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--out", "--checkpoint"])
def test_folders_that_cannot_be_written(option, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        run(*SMALL, "--out", tmp_path, option, folder, status=2)
        out, err = capsys.readouterr()
        assert out == "", "no training before that"
        assert err.startswith(f"./train: {option} {folder}: files cannot be written there (")
        assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("loader", "module"), [("torch", "torch"), ("tf", "tensorflow"), ("tfds", "tensorflow_datasets")]
)
def test_a_library_that_is_not_installed(loader, module, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, module, None)
    run("--loader", loader, "--out", tmp_path, status=2)
    err = capsys.readouterr().err
    assert err.startswith(f"./train: {module} is not installed. To install it: ")
    assert " -m pip install " in err
    assert err.count("\n") == 1


def test_more_in_a_batch_than_there_are(tmp_path, capsys):
    run("--batch-size", "2000", "--out", tmp_path, status=2)
    assert capsys.readouterr().err == "./train: --batch-size 2000: there are only 1437 pictures to learn from\n"


def test_a_training_that_explodes(tmp_path, capsys):
    run("--learning-rate", "1e30", "--epochs", "2", "--out", tmp_path, status=1)
    assert capsys.readouterr().err == "./train: the loss has become infinite: choose a smaller --learning-rate\n"
    assert not list(tmp_path.iterdir())


def test_the_split():
    train, test = selu_mlp.digits.load(0)
    assert train["image"].shape == (1437, 64) and test["image"].shape == (360, 64)
    assert train["image"].dtype == np.float32 and train["label"].dtype == np.int32
    assert abs(train["image"].mean()) < 1e-6 and abs(train["image"].std() - 1) < 1e-6
    assert min(np.bincount(test["label"])) >= 34
    np.testing.assert_array_equal(selu_mlp.digits.load(0).test["label"], test["label"])
    assert not np.array_equal(selu_mlp.digits.load(1).test["label"], test["label"])
