"""A copy of the repository as somebody has it who just cloned it, and ./train in it, as that person would type it."""

import os
import shutil
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
_NOT_IN_A_CLONE = shutil.ignore_patterns(".venv", "__pycache__", "*.egg-info", "build", "out", "tests")
_OF_TESTS = ("PYTHONPATH", "XLA_FLAGS", "JAX_PLATFORMS", "MPLBACKEND", "PHLOX_NUM_CPU_DEVICES")


class Clone:
    """The parts of the repository that ./train needs, in a new folder."""

    def __init__(self, folder):
        self.folder = Path(folder)
        for name in ("packages", "scripts"):
            shutil.copytree(REPOSITORY / name, self.folder / name, ignore=_NOT_IN_A_CLONE)
        shutil.copy2(REPOSITORY / "train", self.folder)

    def start(self, *words, **environment):
        """Starts ./train in a process group of its own, so that signals reach all of it, as from a terminal."""
        return subprocess.Popen(
            ["./train", *map(str, words)],
            cwd=self.folder,
            env={name: value for name, value in os.environ.items() if name not in _OF_TESTS} | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )

    def train(self, *words, status=0, timeout=60, **environment):
        """Runs ./train, which must end with this exit status. Returns its output and its errors."""
        with self.start(*words, **environment) as process:
            try:
                out, err = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        assert process.returncode == status, f"exit status {process.returncode}\n{out}\n{err}"
        return out, err
