"""The first program, in small: what it writes, how it goes on after a stop, and what it refuses."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import phlox
from example_runs import SMALL, check_picture, results, run
from phlox_examples import selu_mlp


def test_results(tmp_path, capsys):
    run("selu-mlp", *SMALL, "--out", tmp_path / "new" / "folder")
    out, err = capsys.readouterr()
    assert err == ""
    found = results(tmp_path / "new" / "folder")
    assert found["program"] == "selu-mlp"
    assert found["settings"] == {
        "seed": 0, "epochs": 3, "batch_size": 64, "learning_rate": 0.002, "half_life": 6.0, "widths": [16],
        "loader": "numpy",
    }  # fmt: skip
    assert [row["epoch"] for row in found["epochs"]] == [1, 2, 3]
    for row, line in zip(found["epochs"], out.splitlines(), strict=False):
        assert line.startswith(f"epoch {row['epoch']}  step {row['step']}  loss {row['loss']:.4g}  ")
    assert found["epochs"][-1]["loss"] < found["epochs"][0]["loss"]
    assert found["test_accuracy"] == found["epochs"][-1]["test_accuracy"] > 0.5
    check_picture(tmp_path / "new" / "folder" / "selu-mlp.png")
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == ["selu-mlp.json", "selu-mlp.png"]


def test_activations_keep_mean_and_deviation():
    """What SELU and its initialization are for."""
    params = selu_mlp.network([512] * 8).init(phlox.random.key(0))
    hidden = phlox.random.normal(phlox.random.key(1), (256, 64))
    for number in range(8):
        layer = params["layers"][str(number)]
        hidden = phlox.nn.selu(hidden @ layer["weight"] + layer["bias"])
        assert abs(float(hidden.mean())) < 0.1
        assert 0.85 < float(hidden.std()) < 1.15


def test_the_seed_decides_everything(tmp_path):
    for name, seed in [("a", 5), ("b", 5), ("c", 6)]:
        run(*SMALL, "--seed", seed, "--out", tmp_path / name)
    assert results(tmp_path / "a") == results(tmp_path / "b")
    assert results(tmp_path / "a")["epochs"] != results(tmp_path / "c")["epochs"]


@pytest.fixture
def stopped(monkeypatch):
    """Makes the next run receive a signal in the middle of its training, after so many steps."""
    make_step = selu_mlp.optim.make_step

    def after(steps, number):
        def made(*args, **options):
            step = make_step(*args, **options)
            count = iter(range(1, 1000))

            class Stopping:
                init = staticmethod(step.init)

                def __call__(self, train, batch):
                    if next(count) == steps:
                        signal.raise_signal(number)
                    return step(train, batch)

            return Stopping()

        monkeypatch.setattr(selu_mlp.optim, "make_step", made)

    yield after
    monkeypatch.undo()


@pytest.mark.parametrize(
    ("number", "status", "said"),
    [(signal.SIGINT, 130, "stopped by Ctrl-C"), (signal.SIGTERM, 143, "stopped by SIGTERM")],
)
def test_a_stopped_training_goes_on_exactly(number, status, said, tmp_path, monkeypatch, stopped, capsys):
    run(*SMALL, "--out", tmp_path / "whole")
    kept = (*SMALL, "--checkpoint", tmp_path / "kept", "--out", tmp_path / "parts")
    handler = signal.getsignal(signal.SIGTERM)
    for steps in (7, 30):  # in the first epoch, and in the second of what is left
        stopped(steps, number)
        capsys.readouterr()
        run(*kept, status=status)
        assert capsys.readouterr().err == f"./train: {said}\n"
        monkeypatch.undo()
    assert signal.getsignal(signal.SIGTERM) is handler
    assert not (tmp_path / "parts" / "selu-mlp.json").exists()
    run(*kept)
    out, _ = capsys.readouterr()
    assert out.startswith("Goes on after step 37, which a checkpoint has.")
    assert results(tmp_path / "parts") == results(tmp_path / "whole")

    # Once more: nothing is left to train, and the results are the same.
    run(*kept, "--out", tmp_path / "again")
    assert results(tmp_path / "again") == results(tmp_path / "whole")


def test_sigterm_ends_a_training_in_the_background(tmp_path, stopped, capsys):
    """There shells that run a script ignore SIGINT, on which Ctrl-C depends."""
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        stopped(7, signal.SIGTERM)
        run(*SMALL, "--checkpoint", tmp_path / "kept", "--out", tmp_path, status=143)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, usual)
    assert capsys.readouterr().err == "./train: stopped by SIGTERM\n"
    assert (tmp_path / "kept" / "steps" / "7").is_dir()


def test_a_reader_that_ends_early(tmp_path):
    words = [sys.executable, "-m", "phlox_examples", *SMALL, "--out", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        started.stdout.close()
        assert started.stderr.read() == b""
    assert started.returncode == 141


def test_more_epochs_go_on_from_fewer(tmp_path):
    """Three epochs and then two more are bit for bit the training of five."""
    words = ("--widths", "16", "--checkpoint", tmp_path / "kept", "--out")
    run(*words, tmp_path / "three", "--epochs", 3)
    run(*words, tmp_path / "five", "--epochs", 5)
    run("--widths", "16", "--epochs", 5, "--out", tmp_path / "at once")
    assert results(tmp_path / "five") == results(tmp_path / "at once")
    assert results(tmp_path / "five")["epochs"][:3] == results(tmp_path / "three")["epochs"]
    assert len(results(tmp_path / "five")["epochs"]) == 5


def test_a_checkpoint_of_another_training_is_refused(tmp_path, capsys):
    words = ("--widths", "8", "--epochs", "1", "--out", tmp_path, "--checkpoint", tmp_path / "kept")
    run(*words)
    for other in (["--seed", "1"], ["--widths", "9"], ["--half-life", "2"], ["--batch-size", "32"]):
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
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1, "no epochs after that"
    assert err == "./train: the loss has become infinite: choose a smaller --learning-rate\n"
    assert not list(tmp_path.iterdir())


def test_the_split():
    train, test = selu_mlp.digits.load(0)
    assert train["image"].shape == (1437, 64) and test["image"].shape == (360, 64)
    assert train["image"].dtype == np.float32 and train["label"].dtype == np.int32
    assert abs(train["image"].mean()) < 1e-6 and abs(train["image"].std() - 1) < 1e-6
    assert min(np.bincount(test["label"])) >= 34
    np.testing.assert_array_equal(selu_mlp.digits.load(0).test["label"], test["label"])
    assert not np.array_equal(selu_mlp.digits.load(1).test["label"], test["label"])
