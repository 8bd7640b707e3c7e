"""The command line: what it takes, what it refuses, and that this needs nothing installed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from example_runs import run
from phlox_examples import gpt, options, plots
from phlox_examples.catalogue import PROGRAMS
from phlox_examples.options import listing, parse, settings_of


def test_the_first_program_is_the_default():
    alone = parse([])
    assert alone.program == "selu-mlp"
    assert parse(["selu-mlp"]) == alone
    assert parse(["--epochs", "30"]) == alone
    assert settings_of(alone) == {
        "seed": 0, "epochs": 30, "batch_size": 64, "learning_rate": 0.002, "half_life": 6.0, "widths": [128, 128, 128],
        "loader": "numpy",
    }  # fmt: skip


def test_options_are_read():
    words = "data-parallel --devices 4 --widths 8 9 --learning-rate 1e-3 --seed 7 --epochs 2 --batch-size 12 --out x"
    found = parse(words.split())
    assert (found.program, found.devices, found.out) == ("data-parallel", 4, "x")
    assert settings_of(found) == {
        "seed": 7, "devices": 4, "processes": 1, "epochs": 2, "batch_size": 12, "learning_rate": 1e-3, "widths": [8, 9]
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("selu-mpl", "there is no program 'selu-mpl'; did you mean selu-mlp? (see ./train --list)"),
        ("mnist", "there is no program 'mnist' (see ./train --list)"),
        ("--epoch 3", "there is no option '--epoch'; did you mean --epochs? (see ./train selu-mlp --help)"),
        ("--epcohs=3", "there is no option '--epcohs=3'; did you mean --epochs?"),
        ("selu-mlp data-parallel", "there is no option 'data-parallel'"),
        ("data-parallel --loader tf", "there is no option '--loader'"),
        ("--epochs", "--epochs: expected one argument"),
        ("--epochs 0", "--epochs: '0' is no whole number from 1 up"),
        ("--epochs -3", "--epochs: "),
        ("--batch-size 1.5", "--batch-size: '1.5' is no whole number from 1 up"),
        ("--seed -1", "--seed: "),
        ("--seed 4294967296", "--seed: '4294967296' is no whole number from 0 to 4294967295"),
        ("--widths", "--widths: expected at least one argument"),
        ("--widths 8 0", "--widths: '0' is no whole number from 1 up"),
        ("--learning-rate 0", "--learning-rate: '0' is no number above 0"),
        ("--learning-rate nan", "--learning-rate: 'nan' is no number above 0"),
        ("--learning-rate fast", "--learning-rate: 'fast' is no number above 0"),
        ("--loader numy", "--loader: invalid choice: 'numy' (choose from "),
        ("data-parallel --devices 0", "--devices: '0' is no whole number from 1 up"),
        ("data-parallel --processes 3", "--devices 8 cannot be split evenly over 3 processes"),
        ("data-parallel --devices 7", "--batch-size 64 cannot be split evenly over 7 devices"),
    ],
)
def test_what_is_refused(words, said, capsys):
    run(*words.split(), status=2)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"./train: {said}")
    assert err.count("\n") == 1


@pytest.mark.parametrize("words", ["--help", *(f"{name} --help" for name in PROGRAMS), "data-parallel -h"])
def test_help(words, capsys):
    with pytest.raises(SystemExit) as stop:
        parse(words.split())
    assert stop.value.code in (0, None)
    text = capsys.readouterr().out
    assert text.startswith("usage: ./train ")
    assert max(map(len, text.splitlines())) <= 120
    if words == "--help":
        for line in text.partition("examples:\n")[2].splitlines():
            if "--help" not in line:
                parse(line.split()[1:])
        assert listing() in text
    else:
        assert "--seed" in text and "--quick" in text and "seconds on two cores" in text


def test_the_readme_shows_commands_that_work():
    text = (Path(__file__).parents[2] / "README.md").read_text()
    commands = [line.partition("#")[0].split() for line in text.splitlines() if line.startswith("./train")]
    assert len(commands) >= 5
    for _, *words in commands:
        if not {"--help", "--list"} & set(words):
            parse(words)
    rows = re.findall(r"^\| `([a-z-]+)` \| (.*) \| (\d+) \|$", text, re.MULTILINE)
    assert [row[0] for row in rows] == list(PROGRAMS)
    for name, _, seconds in rows:
        assert int(seconds) == PROGRAMS[name].seconds


def test_neither_help_nor_refusals_need_what_is_not_python(tmp_path):
    source = Path(options.__file__).parents[1]

    def bare(*words):
        command = [sys.executable, "-S", "-m", "phlox_examples.options", *words]
        done = subprocess.run(command, cwd=source, env={}, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    assert bare("data-parallel", "--devices", "2") == (0, "", "")
    status, out, err = bare("--help")
    assert (status, err) == (0, "") and "data-parallel" in out
    status, out, err = bare("slu-mlp")
    assert (status, out) == (2, "") and "did you mean selu-mlp" in err


@pytest.mark.parametrize(("name", "library"), [("cnn", "torch"), ("lora", "torch"), ("tf-digits", "tensorflow")])
def test_libraries_are_checked_before_anything_else(name, library, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, library, None)
    out = tmp_path / "new"
    run(name, "--out", out, status=2)
    err = capsys.readouterr().err
    assert err.startswith(f"./train: {library} is not installed. To install it: ") and err.count("\n") == 1
    assert err.endswith({"torch": "pip install torch --index-url https://download.pytorch.org/whl/cpu\n",
                         "tensorflow": "pip install tensorflow-cpu\n"}[library])  # fmt: skip
    assert not out.exists()
    assert f"[needs {library}]" in next(line for line in listing().splitlines() if line.startswith(f"{name} "))


def test_ticks_of_epochs_are_whole_numbers():
    for epochs in (1, 2, 3, 7, 150):
        figure = plots.figure("")
        axes = figure.subplots()
        plots.curve(axes, list(range(1, epochs + 1)), [0.5] * epochs, plots.BLUE, "")
        low, high = axes.get_xlim()
        ticks = [tick for tick in axes.get_xticks() if low <= tick <= high]
        assert ticks and all(tick == int(tick) for tick in ticks), epochs


def test_a_text_is_wrapped_between_words():
    text = gpt.wrapped("The quick brown fox jumps over\n\nthe lazy dog" + " again" * 100, 12)
    lines = text.split("\n")
    assert lines[:5] == ["The quick", "brown fox", "jumps over", "", "the lazy dog"]
    assert len(lines) == 26 and max(map(len, lines)) <= 12
