"""Programs run in this process, small, with what they leave behind."""

import json

from phlox_examples.cli import main

SMALL = ("--widths", "16", "--epochs", "3")


def run(*words, status=0):
    """Runs a program, which must end with this exit status."""
    assert main([str(word) for word in words]) == status


def results(folder, program="selu-mlp"):
    """The numbers that a program wrote to a folder."""
    return json.loads((folder / f"{program}.json").read_text())


def size_of_png(path):
    """(width, height) of a picture, which must be a PNG."""
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(head[16:20]), int.from_bytes(head[20:24])
