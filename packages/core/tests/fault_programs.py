"""The programs into which faults are injected, and what must hold after each fault.

    python fault_programs.py PROGRAM FIRST STRIDE      the faults FIRST, FIRST + STRIDE, … up to 200

Prints the number of faults, the places where they were, and every promise that was broken; the exit status is 1 then.
"""

from __future__ import annotations

import collections
import os
import shutil
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import faults

if __name__ == "__main__":
    faults.install()

import numpy as np

import phlox
import phlox.numpy as jnp

LAST = 200
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
W = np.linspace(0.5, 1, 6, dtype=np.float32).reshape(3, 2)


class Program:
    """One program. `state` is what the user holds: it lives through a failure."""

    def __init__(self, folder: str):
        self.folder = folder

    def prepare(self) -> None:
        """What happens before the fault."""

    def run(self) -> Any:
        """Runs to the end from the present state; returns a tree of arrays."""
        raise NotImplementedError

    def check(self, place: str) -> None:
        """What must hold after a fault at this place; raises `AssertionError` otherwise."""


class Train(Program):
    """Steps that donate the parameters, with operations outside of `jit` and an evaluation between them. A step that
    failed before it was executed can be repeated."""

    def prepare(self) -> None:
        def loss(params: Any, x: Any, key: Any) -> Any:
            noise = phlox.random.normal(key, x.shape) * 0.01
            return jnp.mean(jnp.tanh((x + noise) @ params["w"]) ** 2) + params["b"] ** 2

        def step(params: Any, x: Any, key: Any) -> Any:
            value, slope = phlox.value_and_grad(loss)(params, x, key)
            return phlox.tree.map(lambda p, g: p - 0.1 * g, params, slope), value

        self.step = phlox.jit(step, donate_argnums=0)
        self.evaluate = phlox.jit(lambda params, x: phlox.lax.map(lambda row: jnp.tanh(row @ params["w"]).sum(), x))
        self.params: Any = None
        self.host = {"b": np.float32(0.5), "w": W}
        self.done, self.losses = 0, []

    def run(self) -> Any:
        if self.params is None:
            self.params = phlox.tree.map(jnp.asarray, self.host)
        while self.done < 8:
            key = phlox.random.fold_in(phlox.random.key(0), self.done)
            batch = jnp.asarray(X)[self.done % 2 :: 2] * (1 + self.done)
            self.params, value = self.step(self.params, batch, key)
            self.done += 1
            self.host = phlox.tree.map(np.array, self.params)
            self.losses.append(value)
        scores = self.evaluate(self.params, X)
        order = jnp.argsort(scores)[::-1]
        return phlox.device_get((self.params, scores[order], jnp.stack(self.losses[-2:])))

    def check(self, place: str) -> None:
        leaves = phlox.tree.leaves(self.params)
        gone = [x for x in leaves if isinstance(x, phlox.Array) and x.is_deleted()]
        if place == "ExecuteResults.consume_with_handlers" and gone:
            self.params = None  # the step has run, and its results are lost: it is repeated with the host's copies
            return
        assert not gone, "a step that was not executed has consumed its parameters"


class Cache(Program):
    """A function that is compiled, stored on disk, and loaded again."""

    def prepare(self) -> None:
        phlox.config.update("compilation_cache_dir", os.path.join(self.folder, "programs"))

    def run(self) -> Any:
        outs = []
        for _ in range(3):
            phlox.clear_caches()
            outs.append(np.asarray(phlox.jit(lambda x: jnp.sin(x) @ x.T)(X)))
        return outs

    def check(self, place: str) -> None:
        from phlox._xla import disk

        folder = os.path.join(self.folder, "programs")
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            if name.endswith(".xla"):
                assert disk.load(name.removesuffix(".xla")) is not None, f"a damaged entry {name} is in the cache"


class Export(Program):
    """A function that is exported, written to a file, read, and called."""

    def run(self) -> Any:
        path = os.path.join(self.folder, "function.bin")
        exported = phlox.export.export(phlox.jit(lambda x: {"y": jnp.cumsum(x, 0) * 2}))(X)
        part = path + ".part"
        with open(part, "wb") as file:
            file.write(exported.serialize())
        os.replace(part, path)
        with open(path, "rb") as file:
            again = phlox.export.deserialize(bytearray(file.read()))
        return phlox.device_get(again.call(X))


class Load(Program):
    """Weights from files of NumPy and safetensors."""

    def prepare(self) -> None:
        from safetensors.numpy import save_file

        import phlox_nn as nn

        np.save(os.path.join(self.folder, "w.npy"), W)
        self.path = os.path.join(self.folder, "model.safetensors")
        save_file({"weight": np.ascontiguousarray(W.T), "bias": np.ones(2, np.float32)}, self.path)
        self.model = nn.Linear(3, 2)

    def run(self) -> Any:
        import phlox_nn as nn

        weights = jnp.load(os.path.join(self.folder, "w.npy"))
        params, _ = nn.load_torch(self.model, self.path)
        return phlox.device_get((weights @ weights.T, self.model.apply(params, jnp.asarray(X))))


class Checkpoint(Program):
    """A step is saved and restored beside an earlier one, which every failure leaves whole."""

    def prepare(self) -> None:
        from phlox_optim.checkpoint import CheckpointManager

        self.path = os.path.join(self.folder, "steps")
        self.tree = {"w": jnp.asarray(W), "step": 3}
        with CheckpointManager(self.path) as manager:
            manager.save(1, self.tree)

    def run(self) -> Any:
        from phlox_optim.checkpoint import CheckpointManager

        with CheckpointManager(self.path) as manager:
            if manager.latest_step() == 1:
                manager.save(2, phlox.tree.map(lambda x: x + 1, self.tree))
            manager.wait_until_finished()
            return phlox.device_get(manager.restore(2, like=self.tree))

    def check(self, place: str) -> None:
        from phlox_optim.checkpoint import CheckpointManager

        with CheckpointManager(self.path) as manager:
            for step in manager.all_steps():
                tree = manager.restore(step, like=self.tree)
                np.testing.assert_array_equal(np.asarray(tree["w"]), W + (step - 1))


PROGRAMS: dict[str, Callable[[str], Program]] = {
    "train": Train, "cache": Cache, "export": Export, "load": Load, "checkpoint": Checkpoint,
}  # fmt: skip


def explained(error: BaseException | None, fault: faults.Fault, folder: str) -> bool:
    """Whether an error of a class that programs catch says, itself or by its cause, what was injected.

    Python's `os.path.isdir` and orbax turn some errors of reading into "no such folder", or only log them. Then it is
    enough that the error names the folder.
    """
    kinds = (phlox.errors.PhloxError, OSError, phlox.errors.JaxRuntimeError)
    if not isinstance(error, kinds):
        return False
    if fault.place in ("os.stat", "os.scandir", "os.listdir", "open", "write") and folder in str(error):
        return True
    text = fault.text
    while error is not None:
        if text in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def same(result: Any, expected: Any) -> bool:
    pairs = zip(phlox.tree.leaves(result), phlox.tree.leaves(expected), strict=True)
    return all(np.array_equal(np.asarray(x), np.asarray(y)) for x, y in pairs)


def one(make: Callable[[str], Program], number: int, expected: Any) -> tuple[str, str, list[str]]:
    """Injects one fault. Returns its place ("" if the program has fewer calls), what happened, and broken promises."""
    broken: list[str] = []
    folder = tempfile.mkdtemp()
    try:
        phlox.clear_caches()
        phlox.cache.forget_folders()
        program = make(folder)
        program.prepare()
        with warnings.catch_warnings(record=True), faults.inject(number) as fault:
            warnings.simplefilter("always")
            try:
                result, error = program.run(), None
            except Exception as raised:
                result, error = None, raised
        outcome = "no error" if error is None else f"{type(error).__name__}: {error}"
        if error is None and not same(result, expected):
            broken.append(f"a wrong result: {result}")
        if error is not None and not explained(error, fault, folder):
            broken.append("unexplained: " + "".join(traceback.format_exception(error)))
        for name, step in (("check", lambda: program.check(fault.place)), ("run again", program.run)):
            try:
                result = step()
                if name == "run again" and not same(result, expected):
                    broken.append(f"{name}: a wrong result: {result}")
            except Exception as again:
                broken.append(f"{name} after {outcome}: " + "".join(traceback.format_exception(again)))
        return fault.place, outcome, broken
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Careless(Program):
    """A program that breaks two promises, which the report must say."""

    def run(self) -> Any:
        try:
            return np.asarray(jnp.asarray(X) + 1)
        except phlox.errors.JaxRuntimeError:
            return np.zeros_like(X)

    def check(self, place: str) -> None:
        assert place != "batched_device_put", "a transfer has failed"


PROGRAMS["careless"] = Careless


def main(name: str, first: int, stride: int) -> int:
    make = PROGRAMS[name]
    shared = tempfile.mkdtemp()  # programs compiled once: most of the faults then cost milliseconds
    phlox.config.update("compilation_cache_dir", shared)
    folder = tempfile.mkdtemp()
    program = make(folder)
    program.prepare()
    expected = program.run()
    shutil.rmtree(folder, ignore_errors=True)
    places: collections.Counter[str] = collections.Counter()
    wrong = 0
    for number in range(first, LAST + 1, stride):
        place, outcome, broken = one(make, number, expected)
        if not place:
            break
        places[place] += 1
        for promise in broken:
            wrong += 1
            print(f"{name}, fault {number} in {place} ({outcome}):\n  {promise}", flush=True)
    shutil.rmtree(shared, ignore_errors=True)
    print(f"{name}: {sum(places.values())} faults, {dict(places)}, {wrong} promises broken", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
