"""Programs run in this process, small, with what they leave behind."""

import json

import matplotlib.image
import numpy as np

import phlox
from phlox_examples.catalogue import PROGRAMS
from phlox_examples.cli import main

# Before a program asks for fewer, which it may until devices are used: the tests of a process share them.
assert phlox.device_count() == 8

SMALL = ("--widths", "16", "--epochs", "3")


def run(*words, status=0):
    """Runs a program, which must end with this exit status."""
    assert main([str(word) for word in words]) == status


def results(folder, program="selu-mlp", quick=False):
    """The numbers that a program wrote to a folder."""
    return json.loads((folder / f"{program}{'-quick' if quick else ''}.json").read_text())


def check_picture(path):
    """A picture must be a PNG, of a size that pages show well, with something drawn in both halves of it."""
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    pixels = matplotlib.image.imread(path)[..., :3]
    height, width, _ = pixels.shape
    assert 1000 < width < 3000 and 500 < height < 2500
    for half in np.array_split(pixels, 2, axis=1):
        assert (half < 0.9).any(-1).mean() > 0.002, f"one half of {path.name} is nearly empty"


def programs(*needs):
    """The names of the programs that need these optional libraries, and no others."""
    return [name for name, program in PROGRAMS.items() if program.needs == needs]


def check_quick_run(name, folder, capsys):
    """``./train NAME --quick`` must write a picture and the numbers that the catalogue names, and no warnings."""
    run(name, "--quick", "--out", folder)
    out, err = capsys.readouterr()
    assert err == ""
    assert f"{name}-quick.png and " in out.splitlines()[-1]
    assert sorted(path.name for path in folder.iterdir() if path.is_file()) == [
        f"{name}-quick.json",
        f"{name}-quick.png",
    ]
    found = results(folder, name, quick=True)
    assert set(found) == {"program", "settings", *PROGRAMS[name].writes}
    assert found["program"] == name and found["settings"]["seed"] == 0
    assert "NaN" not in (folder / f"{name}-quick.json").read_text()
    check_picture(folder / f"{name}-quick.png")
