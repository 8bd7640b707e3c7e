"""How a training step scales over processes and devices, and a model of it: the figures of docs/scaling.md.

    python -m benchmarks.scaling run                measures layouts of one machine, and compares them with the model
    python -m benchmarks.scaling compile            compile time and memory of the step for meshes up to 4,096 devices
    python -m benchmarks.scaling predict            reads the model off for more devices

The step is data-parallel: parameters on all devices, the batch split, gradients added up. The global batch is the same
in all layouts. Processes are started by `phlox.launch`; their traffic stays on loopback.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

#: processes x devices; the first is what the others are divided by
LAYOUTS = ((1, 1), (1, 8), (2, 4), (4, 2))
#: smaller layouts and smaller networks, whose steps give the constants of the model
FITTED = {"memory": ((1, 2), (1, 4)), "loopback": ((2, 1), (4, 1), (2, 2))}
FITTED_WIDTHS = (256, 384)
WIDTH, LAYERS, BATCH = 512, 3, 2048
ROUNDS = 15
#: how often all layouts are measured, in turns
REPEATS = 3


def main() -> None:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "compile", "predict", "worker", "compiling"])
    parser.add_argument("--compute", type=float, default=10.0, help="predict: ms of a device's part of a step")
    parser.add_argument("--megabytes", type=float, default=100.0, help="predict: size of the gradients")
    parser.add_argument("--gigabytes", type=float, default=25.0, help="predict: bandwidth of each device, a second")
    parser.add_argument("--latency", type=float, default=10.0, help="predict: microseconds for each message")
    wanted = parser.parse_args()
    actions: dict[str, Callable[[], Any]] = {
        "run": run,
        "compile": compile_meshes,
        "predict": lambda: predict(wanted.compute, wanted.megabytes, wanted.gigabytes, wanted.latency),
        "worker": worker,
        "compiling": compiling,
    }
    actions[wanted.what]()


# --- measuring ------------------------------------------------------------------------------------------


def run() -> None:
    """Measures all layouts, fits the constants of the model, and prints both."""
    constants, samples = {}, {}
    wanted = {(kind, *layout): FITTED_WIDTHS for kind, layouts in FITTED.items() for layout in layouts}
    every = repeated({**wanted, **{("measured", *layout): (WIDTH,) for layout in LAYOUTS}})
    for wire_kind, layouts in FITTED.items():
        found = [every[wire_kind, *layout] for layout in layouts]
        samples[wire_kind] = [(each["ranks"], sum(row["wire"]), row) for each in found for row in each["rows"]]
        constants[wire_kind] = fit(samples[wire_kind])
        latency, byte = constants[wire_kind]
        print(
            f"{wire_kind}: {latency * 1e6:.0f} us a message, {1e-9 / max(byte, 1e-15):.2f} GB/s for all ranks together"
        )
    measured = [every["measured", *layout] for layout in LAYOUTS]
    alone = measured[0]["rows"][0]["step"]
    print("layout     step  compute exchange  predicted   step / predicted   (1 = the step on 1x1)")
    for layout, each in zip(LAYOUTS, measured, strict=True):
        (row,) = each["rows"]
        chosen = constants["memory" if layout[0] == 1 else "loopback"]
        exchange = sum(cost(each["ranks"], size, *chosen) for size in row["wire"])
        predicted = row["compute"] + exchange
        figures = [value / alone for value in (row["step"], row["compute"], exchange, predicted)]
        print(
            "{}x{}".format(*layout).ljust(8),
            *(f"{value:8.2f}" for value in figures),
            f"{row['step'] / predicted:12.2f}",
        )
    print(json.dumps({"samples": samples, "measured": measured, "constants": constants}))


def repeated(wanted: dict[Any, tuple[int, ...]]) -> dict[Any, dict[str, Any]]:
    """The figures of layouts, each measured several times, in turns; of each figure the smallest is kept."""
    best: dict[Any, dict[str, Any]] = {}
    for _ in range(REPEATS):
        for key, widths in wanted.items():
            found = launched(*key[1:], "worker", *map(str, widths))
            known = best.setdefault(key, found)
            for row, new in zip(known["rows"], found["rows"], strict=True):
                row.update({name: min(row[name], new[name]) for name in ("step", "compute")})
    return best


def cost(ranks: int, size: float, latency: float, byte: float) -> float:
    """Seconds of an all-reduce of `size` bytes by a ring of `ranks` on one machine.

    Each rank sends 2 (n - 1) messages of 1 / n of the array. All ranks share the memory and the processors of the
    machine, so `latency` and `byte`, the seconds for a message and for a byte, count for those of all ranks.
    """
    return 2 * (ranks - 1) * (latency * ranks + size * byte)


def fit(samples: list[tuple[int, int, dict[str, Any]]]) -> tuple[float, float]:
    """The constants of `cost` that fit what the steps take beyond their compute; neither is negative."""
    rows = np.array([[2 * (n - 1) * n, 2 * (n - 1) * size] for n, size, _ in samples], float)
    seconds = np.array([max(row["step"] - row["compute"], 1e-6) for *_, row in samples])
    both = np.linalg.lstsq(rows, seconds, rcond=None)[0]
    alone = rows.T @ seconds / (rows**2).sum(0)  # of each constant, if the other is zero
    if both.min() >= 0:
        latency, byte = both
    else:
        errors = [float(((row * value - seconds) ** 2).sum()) for row, value in zip(rows.T, alone, strict=True)]
        latency, byte = (alone[0], 0.0) if errors[0] < errors[1] else (0.0, alone[1])
    return float(latency), float(byte)


def launched(processes: int, devices: int, *words: str) -> dict[str, Any]:
    """The figures that process 0 of a layout prints."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "phlox.launch", "-n", str(processes), "--devices", str(devices)),
            *("-m", "benchmarks.scaling", words[0]),
        ],
        env={**os.environ, "PHLOX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "2", "SCALING": " ".join(words[1:])},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    return json.loads(re.search(r"FIGURES(.*)", done.stdout)[1])  # type: ignore[index]


def worker() -> None:
    """One process of a layout."""
    import phlox
    import phlox.numpy as jnp
    from phlox import P, lax

    phlox.distributed.initialize()
    ranks = phlox.device_count()
    mesh = phlox.make_mesh((ranks,), ("data",), axis_types=(phlox.sharding.AxisType.Auto,))
    whole, split = phlox.NamedSharding(mesh, P()), phlox.NamedSharding(mesh, P("data"))
    found: dict[str, Any] = {"ranks": ranks, "rows": []}

    def spread(shape: tuple[int, ...], sharding: Any, seed: int) -> Any:
        values = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
        return phlox.make_array_from_callback(shape, sharding, lambda index: values[index])

    def best(*functions: Callable[[], Any]) -> list[float]:
        """The shortest time of each, in turns, as other programs disturb."""
        times: list[list[float]] = [[] for _ in functions]
        for _ in range(3 + ROUNDS):
            for found, function in zip(times, functions, strict=True):
                phlox.block_until_ready(meet(one))  # all processes begin at the same time
                start = time.perf_counter()
                phlox.block_until_ready(function())
                found.append(time.perf_counter() - start)
        return [min(found[3:]) for found in times]

    meet = phlox.jit(phlox.shard_map(lambda x: lax.psum(x, "data"), mesh=mesh, in_specs=P("data"), out_specs=P()))
    one = spread((ranks,), split, 1)

    def loss(weights: Any, x: Any) -> Any:
        for w in weights:
            x = jnp.tanh(x @ (w * 0.05))
        return (x**2).mean()

    def step(weights: Any, x: Any) -> Any:
        return [w - 0.1 * g for w, g in zip(weights, phlox.grad(loss)(weights, x), strict=True)]

    def alone(weights: Any, x: Any) -> Any:  # the same without the sum over the devices
        return [w[None] for w in step([lax.pcast(w, "data", to="varying") for w in weights], x)]

    for width in map(int, os.environ["SCALING"].split()):
        weights = [spread((width, width), whole, i) for i in range(LAYERS)]
        x = spread((BATCH, width), split, 7)
        compiled = phlox.jit(step, out_shardings=whole).lower(weights, x).compile()
        part = phlox.jit(phlox.shard_map(alone, mesh=mesh, in_specs=(P(), P("data")), out_specs=P("data")))

        def apart(part: Any = part, weights: Any = weights, x: Any = x) -> Any:
            phlox.block_until_ready(part(weights, x))
            return meet(one)  # so that all processes end at the same time

        whole_step, compute, meeting = best(lambda: compiled(weights, x), apart, lambda: meet(one))  # noqa: B023
        compute = whole_step if ranks == 1 else compute - meeting
        found["rows"].append({"width": width, "step": whole_step, "compute": compute, "wire": wire(compiled.as_text())})
    if phlox.process_index() == 0:
        print("FIGURES" + json.dumps(found))


def wire(text: str) -> list[int]:
    """Bytes of the operands of each all-reduce of an optimised program."""
    found = []
    for line in re.findall(r"= (.*?) all-reduce(?:-start)?\(", text):
        shapes = re.findall(r"f32\[([\d,]*)\]", line)
        found.append(4 * sum(int(np.prod([int(n) for n in shape.split(",") if n])) for shape in shapes))
    return found


# --- compiling for many devices -------------------------------------------------------------------------


def compile_meshes() -> None:
    """Compiles the step for meshes of more and more devices, none of which runs it."""
    print("devices  lower ms  compile ms  program bytes a device  text of the module  memory of the process MiB")
    for processes, devices in ((1, 8), (1, 64), (1, 256), (1, 1024), (2, 2048)):
        each = launched(processes, devices, "compiling")
        print("  ".join(str(each[key]) for key in ("devices", "lower", "compile", "bytes", "text", "memory")))


def compiling() -> None:
    """Compiles the step for all devices of all processes."""
    import resource

    import phlox
    import phlox.numpy as jnp
    from phlox import P

    phlox.config.update("enable_compilation_cache", False)
    phlox.distributed.initialize()
    count = phlox.device_count()
    mesh = phlox.make_mesh((count // 8, 8), ("data", "model"), axis_types=(phlox.sharding.AxisType.Auto,) * 2)
    over, shapes = phlox.NamedSharding(mesh, P("data")), [(WIDTH, WIDTH)] * LAYERS
    split = [phlox.NamedSharding(mesh, P(None, "model") if i % 2 == 0 else P("model")) for i in range(LAYERS)]

    def loss(weights: Any, x: Any) -> Any:
        for w in weights:
            x = jnp.tanh(x @ w)
        return (x**2).mean()

    def step(weights: Any, x: Any) -> Any:
        return [w - 0.1 * g for w, g in zip(weights, phlox.grad(loss)(weights, x), strict=True)]

    arguments = [phlox.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    x = phlox.ShapeDtypeStruct((8 * count, WIDTH), jnp.float32)
    start = time.perf_counter()
    lowered = phlox.jit(step, in_shardings=(split, over), out_shardings=split).lower(arguments, x)
    middle = time.perf_counter()
    compiled = lowered.compile()
    end = time.perf_counter()
    if phlox.process_index() == 0:
        found = {"devices": count, "lower": round((middle - start) * 1e3), "compile": round((end - middle) * 1e3)}
        found |= {"bytes": compiled.memory_analysis().peak_memory_in_bytes, "text": len(lowered.as_text())}
        found["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print("FIGURES" + json.dumps(found))


# --- reading the model off ------------------------------------------------------------------------------


def predict(compute: float, megabytes: float, gigabytes: float, latency: float) -> None:
    """Prints what a step takes for more devices, each of which has a connection of its own and an equal batch.

    Args:
      compute: milliseconds of a device's part.
      megabytes: size of the gradients.
      gigabytes: bandwidth of a device's connection, a second.
      latency: microseconds for each message.
    """
    print("devices  exchange ms: ring  tree  |  efficiency: ring  tree")
    for count in (1, 8, 64, 256, 1024, 4096):
        volume = 2 * (count - 1) / count * megabytes / gigabytes
        ring = volume + 2 * (count - 1) * latency / 1e3
        tree = volume + 2 * np.ceil(np.log2(count)) * latency / 1e3
        shares = [compute / (compute + each) for each in (ring, tree)]
        print(f"{count:7d}  {ring:8.2f} {tree:8.2f}  |  {shares[0]:6.2f} {shares[1]:6.2f}")


if __name__ == "__main__":
    main()
