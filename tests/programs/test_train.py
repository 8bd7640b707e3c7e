"""./train from a fresh clone: what it installs, what it writes, what it says when something is wrong."""

import itertools
import json
import os
import signal
import subprocess
import time

import pytest

from programs.clone import Clone

INSTALLING = "Installing phlox and what its examples need into .venv (first run only).\n"


@pytest.fixture(scope="session")
def first_run(tmp_path_factory):
    """(clone, output, errors) of the very first ./train, which makes .venv."""
    clone = Clone(tmp_path_factory.mktemp("clone"))
    return clone, *clone.train(timeout=900)


@pytest.fixture
def clone(first_run):
    return first_run[0]


def numbers(clone, path):
    return json.loads((clone.folder / path).read_text())


def check_plot(path):
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = int.from_bytes(head[16:20]), int.from_bytes(head[20:24])
    assert 1000 < width < 3000 and 500 < height < 2000
    assert path.stat().st_size > 20_000


def test_the_first_run(first_run):
    clone, out, err = first_run
    assert err == INSTALLING
    lines = out.splitlines()
    assert [line.split()[1] for line in lines[:30]] == [str(epoch) for epoch in range(1, 31)]
    found = numbers(clone, "out/selu-mlp.json")
    assert found["test_accuracy"] >= 0.97
    assert lines[30] == (f"Test accuracy: {found['test_accuracy']:.2%}. Wrote out/selu-mlp.png and out/selu-mlp.json.")
    assert found["epochs"][-1]["loss"] < 0.1 < found["epochs"][0]["loss"]
    check_plot(clone.folder / "out" / "selu-mlp.png")


def test_what_is_installed(clone):
    python = clone.folder / ".venv" / "bin" / "python"
    done = subprocess.run([python, "-m", "pip", "list", "--format=json"], capture_output=True, check=True, timeout=60)
    found = {entry["name"]: entry for entry in json.loads(done.stdout)}
    assert not found.keys() & {"torch", "tensorflow", "tensorflow-cpu", "tensorflow-datasets"}
    for name, folder in [("phlox", "core"), ("phlox-nn", "nn"), ("phlox-examples", "examples")]:
        where = found[name]["editable_project_location"]
        assert os.path.samefile(where, clone.folder / "packages" / folder)


def test_the_second_run_installs_nothing_and_gives_the_same(clone):
    before = numbers(clone, "out/selu-mlp.json")
    _, err = clone.train("selu-mlp", "--out", "out/again", timeout=30)
    assert err == ""
    assert numbers(clone, "out/again/selu-mlp.json") == before


def test_from_another_folder(clone, tmp_path):
    done = subprocess.run(
        [clone.folder / "train", "--epochs", "1"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out" / "selu-mlp.png").exists()


def test_edited_sources_run(clone):
    source = clone.folder / "packages" / "examples" / "src" / "phlox_examples" / "options.py"
    text = source.read_text()
    source.write_text(text.replace("Trains networks", "Coaches networks"))
    try:
        assert "Coaches networks" in clone.train("--help")[0]
    finally:
        source.write_text(text)


def test_data_parallel(clone):
    out, err = clone.train("data-parallel", "--devices", "8")
    assert err == ""
    lines = out.splitlines()
    assert lines[0].split("   ") == ["epoch", "loss on 1 device", "loss on 8", "largest difference"]
    assert len(lines) == 12
    found = numbers(clone, "out/data-parallel.json")
    assert found["settings"]["devices"] == 8
    assert max(abs(step["one_device"] - step["all_devices"]) for step in found["losses"]) < 1e-5
    assert found["losses"][-1]["all_devices"] < 0.5 < found["losses"][0]["all_devices"]
    check_plot(clone.folder / "out" / "data-parallel.png")


def test_killed_and_started_again(clone):
    words = ("--epochs", 60, "--out")
    clone.train(*words, "out/whole")
    kept = (*words, "out/parts", "--checkpoint", "out/checkpoints")
    for lines in (1, 12, 7):
        with clone.start(*kept) as process:
            for _ in itertools.islice(process.stdout, lines):
                pass
            os.killpg(process.pid, signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL
        assert not (clone.folder / "out" / "parts" / "selu-mlp.json").exists()
    out, err = clone.train(*kept)
    assert err == ""
    assert out.startswith("Goes on after step ")
    assert numbers(clone, "out/parts/selu-mlp.json") == numbers(clone, "out/whole/selu-mlp.json")

    _, err = clone.train(*kept, "--seed", 1, status=2)
    assert err.startswith("./train: --checkpoint out/checkpoints belongs to a training with seed 0, and this one has ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("number", "status", "said"), [(signal.SIGINT, 130, "Ctrl-C"), (signal.SIGTERM, 143, "SIGTERM")]
)
def test_stopped_by_a_signal(number, status, said, clone):
    kept = ("--out", "out/stopped", "--checkpoint", f"out/stopped/{said}")
    with clone.start("--epochs", 100_000, *kept) as process:
        for _ in itertools.islice(process.stdout, 3):
            pass
        os.killpg(process.pid, number)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (status, f"./train: stopped by {said}\n")
    out, _ = clone.train("--epochs", 1, *kept)
    assert out.startswith("Goes on after step "), "what was learnt is kept"


def test_a_library_that_is_missing(clone):
    install = "To install it: .venv/bin/python -m pip install"
    for loader, said in [
        ("torch", f"torch is not installed. {install} torch"),
        ("tf", f"tensorflow is not installed. {install} tensorflow"),
        ("tfds", f"tensorflow_datasets is not installed. {install} tensorflow-datasets"),
    ]:
        out, err = clone.train("--loader", loader, status=2)
        assert out == ""
        assert err.startswith(f"./train: {said}")
        assert err.count("\n") == 1


REFUSED = {
    "selu-mpl": "there is no program 'selu-mpl'; did you mean selu-mlp? (see ./train --list)",
    "--epcohs 3": "there is no option '--epcohs'; did you mean --epochs? (see ./train selu-mlp --help)",
    "selu-mlp --epochs 0": "--epochs: '0' is no whole number from 1 up (see ./train selu-mlp --help)",
    "data-parallel --devices 0": "--devices: '0' is no whole number from 1 up (see ./train data-parallel --help)",
    "data-parallel --devices 7": "--batch-size 64 cannot be split evenly over 7 devices "
    "(see ./train data-parallel --help)",
    "--out train": "--out train: files cannot be written there (File exists)",
    "data-parallel --out /proc/none": "--out /proc/none: files cannot be written there (No such file or directory)",
    "--out out/fine --checkpoint train": "--checkpoint train: files cannot be written there (File exists)",
}


@pytest.mark.parametrize("words", REFUSED)
def test_refused(words, clone):
    assert clone.train(*words.split(), status=2) == ("", f"./train: {REFUSED[words]}\n")


NO_INDEX = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_EXTRA_INDEX_URL": ""}


class TestWithoutInstallation:
    """What ./train does where there is no usable .venv; nothing here waits for an installation."""

    @pytest.fixture
    def clone(self, tmp_path):
        return Clone(tmp_path / "a clone")

    def test_help_and_refusals_install_nothing(self, clone):
        out, err = clone.train("--help")
        assert err == "" and out.startswith("usage: ./train")
        assert "--devices" in clone.train("data-parallel", "--help")[0]
        for words, said in list(REFUSED.items())[:5]:
            assert clone.train(*words.split(), status=2) == ("", f"./train: {said}\n")
        assert not (clone.folder / ".venv").exists()

    def test_without_a_network(self, clone):
        # An index where nobody listens, as pip finds it offline.
        nowhere = {**NO_INDEX, "PIP_NO_INDEX": "0", "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "1"}
        _, err = clone.train(status=1, **nowhere)
        assert err.startswith(INSTALLING)
        said = err.removeprefix(INSTALLING)
        assert said.startswith("./train: there is no network: pip cannot reach its package index")
        assert said.count("\n") == 1

    def test_an_installation_that_was_killed_begins_anew(self, clone):
        with clone.start() as process:
            assert process.stderr.readline() == INSTALLING
            while not (clone.folder / ".venv" / "phlox-install.log").exists():
                assert process.poll() is None
                time.sleep(0.05)
            os.killpg(process.pid, signal.SIGKILL)
        litter = clone.folder / ".venv" / "litter"
        litter.touch()
        # What happens then happens without a package index, which is sooner done, and is what one sees offline.
        _, err = clone.train(status=1, **NO_INDEX)
        assert not litter.exists()
        assert err.startswith(INSTALLING)
        assert "\nERROR: Could not find" in err
        assert "\n./train: pip could not install what is needed; its reason stands above" in err
        assert "Traceback" not in err

    def test_ctrl_c_while_it_installs(self, clone):
        with clone.start() as process:
            assert process.stderr.readline() == INSTALLING
            os.killpg(process.pid, signal.SIGINT)
            _, err = process.communicate(timeout=30)
        assert process.returncode == 130
        assert err.endswith("./train: stopped by Ctrl-C; the next run installs the rest\n")

    def test_an_environment_of_somebody_else_is_left_alone(self, clone):
        theirs = clone.folder / ".venv" / "bin" / "python"
        theirs.parent.mkdir(parents=True)
        theirs.write_text("#!/bin/sh\nexit 1\n")
        theirs.chmod(0o755)
        out, err = clone.train(status=1)
        assert out == ""
        assert err.endswith("/.venv has no working pip. Move it away, and ./train makes another one.\n")
        assert err.count("\n") == 1
        assert theirs.read_text() == "#!/bin/sh\nexit 1\n"


def test_changed_dependencies_are_installed(clone):
    """The last test of this file: it changes what the others run."""
    project = clone.folder / "packages" / "nn" / "pyproject.toml"
    project.write_text(project.read_text().replace('description = "', 'description = "Deep: '))
    _, err = clone.train("--epochs", 1, timeout=300)
    assert err == INSTALLING.replace("first run only", "its packages have changed")
    assert clone.train("--epochs", 1)[1] == ""
