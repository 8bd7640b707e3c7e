"""``./train data-parallel``: a training with batches split over devices equals the training on one device.

The loss of a batch is a mean over its examples, and so is the gradient. Cut the batch into equal parts, one for each
of N devices; each device computes the gradient g_k of its part, and

    g = (g_1 + ... + g_N) / N

is the gradient of the whole batch. All devices then make the same step from the same parameters. `phlox.pmap` runs the
step on all devices, and ``make_step(axis_name=...)`` averages the gradients over them.

With ``--processes P`` the devices belong to P processes, as on several machines, which `phlox.distributed` connects.
There the arrays are global: a batch is sharded over all devices of all processes, of which each reads only its own
part, and `jit` inserts the sum over devices by itself, from the shardings of what it gets.

The numbers are in 64 bits. Several devices add gradients in another order than one, so results differ by rounding
errors, and SELU's derivative jumps at 0: once an activation is positive here and negative there, the trainings
diverge, although both are correct. In 32 bits that happens within a few epochs. The losses, as all metrics, are kept
in 32 bits: differences below 1e-8 or so are not seen.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import multiprocessing
import os
import socket
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import phlox
import phlox_data
import phlox_nn as nn
import phlox_optim as optim
from phlox.sharding import Mesh, NamedSharding, PartitionSpec as P

from . import digits, plots, report, results
from .errors import ProgramError
from .options import settings_of

TOLERANCE = 1e-5


def make_step(options: argparse.Namespace, axis_name: str | None = None) -> tuple[optim.Step, Any]:
    """The step of the training, and the state before the first."""
    model = nn.MLP((64, *options.widths, 10), nn.selu)

    def loss(params: Any, batch: Any) -> Any:
        scores = model.apply(params, batch["image"])
        return optim.softmax_cross_entropy_with_integer_labels(scores, batch["label"]).mean()

    step = optim.make_step(loss, optim.adam(options.learning_rate), axis_name=axis_name)
    params = model.init(phlox.random.key(options.seed))  # of float32 in either mode
    return step, step.init(phlox.tree.map(lambda x: x.astype(float), params))


def run(options: argparse.Namespace) -> None:
    """Trains on one device and on several, prints the losses of each epoch side by side, and draws them."""
    results.make_folder(options.out, "--out")
    phlox.config.update("enable_x64", True)
    devices = find_devices(options.devices if options.processes == 1 else 1)
    data = digits.load(options.seed)
    steps = digits.steps(data, options.batch_size)
    batches = functools.partial(phlox_data.batches, data.train, options.batch_size, seed=options.seed, last="drop")

    where = f"loss on {options.devices}" + (f" in {options.processes}" if options.processes > 1 else "")
    step, state = make_step(options)
    with contextlib.ExitStack() as stack:
        if options.processes == 1:
            parallel = on_devices(options, batches, devices)
        else:
            parallel = stack.enter_context(contextlib.closing(in_processes(options)))
        shown = stack.enter_context(report.progress("Training", 2 * steps * options.epochs))
        shown.row("epoch", "loss on 1 device", where, "largest difference")
        losses = []  # for each epoch the losses of its steps, on one device and on all of them
        for epoch in range(options.epochs):
            first = []
            for batch in shown.counted(batches().epoch(epoch)):
                state, figures = step(state, batch)
                first.append(figures["loss"].value())
            second = np.array([next(parallel) for _ in shown.counted(range(steps))])
            losses.append((np.array(first), second))
            largest = np.abs(losses[-1][0] - second).max()
            shown.row(f"{epoch + 1}", f"{np.mean(first):.7f}", f"{second.mean():.7f}", f"{largest:.1e}")

    curves = np.concatenate(losses, axis=1)
    if not np.isfinite(curves).all():
        raise ProgramError("the loss has become infinite: choose a smaller --learning-rate", status=1)
    difference = float(np.abs(curves[0] - curves[1]).max())
    same = difference <= TOLERANCE
    contents = {
        "settings": settings_of(options),
        "losses": [{"step": n, "one_device": a, "all_devices": b} for n, (a, b) in enumerate(curves.T.tolist(), 1)],
        "largest_difference": difference,
        "tolerance": TOLERANCE,
    }
    name = f"{options.devices} devices" if options.devices > 1 else "1 device by pmap"
    if options.processes > 1:
        name += f" in {options.processes} processes"
    title = f"1 device or {name}: the losses {'are the same' if same else 'DIFFER'}, to {difference:.0e}"
    written = results.write(options, contents, compared_curves(curves, name, title))
    report.show(f"Largest difference of any step: {difference:.1e}. Wrote {' and '.join(written)}.")
    if not same:
        raise ProgramError(f"the losses differ by {difference:.1e}, which is more than {TOLERANCE:.0e}", status=1)


def on_devices(options: argparse.Namespace, batches: Any, devices: list[phlox.Device]) -> Any:
    """Yields the losses of the training with `pmap` on the devices of this process."""
    step, state = make_step(options, axis_name="devices")
    # Each device has the whole state (None) and its part of the batch, whose first axis counts devices (0).
    parallel = phlox.pmap(step.function, axis_name="devices", in_axes=(None, 0), out_axes=None, devices=devices)
    for epoch in range(options.epochs):
        for batch in batches(devices=devices).epoch(epoch):
            state, figures = parallel(state, batch)
            yield float(figures["loss"])


def in_processes(options: argparse.Namespace) -> Any:
    """Starts the processes, and yields the losses of their training."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    workers = [
        context.Process(target=work, args=(options, address, number, sender if number == 0 else None), daemon=True)
        for number in range(options.processes)
    ]
    try:
        for worker in workers:
            worker.start()
        sender.close()
        for _ in range(options.epochs):
            try:
                yield from receiver.recv()
            except EOFError:
                raise ProgramError("a process of the training has ended early", status=1) from None
        for worker in workers:
            worker.join()
    finally:
        for worker in workers:
            if worker.is_alive():
                worker.terminate()


def work(options: argparse.Namespace, address: str, number: int, losses: Any) -> None:
    """What process `number` does: its part of the training. Process 0 sends the losses, an epoch at a time."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the library that connects processes prints each connection
    phlox.config.update("enable_x64", True)
    with contextlib.suppress(phlox.errors.PhloxError):
        phlox.config.update("num_cpu_devices", options.devices // options.processes)
    phlox.distributed.initialize(address, num_processes=options.processes, process_id=number)
    mesh = Mesh(np.array(phlox.devices()), ("devices",))
    step, state = make_step(options)
    state = phlox.device_put(state, NamedSharding(mesh, P()))  # whole on each device
    # `batch_size` is that of all processes together, in the order of the training on one device.
    batches = phlox_data.batches(
        digits.load(options.seed).train,
        options.batch_size,
        seed=options.seed,
        last="drop",
        device=NamedSharding(mesh, P("devices")),
    )
    for epoch in range(options.epochs):
        epoch_losses = []
        for batch in batches.epoch(epoch):
            state, figures = step(state, batch)
            epoch_losses.append(float(figures["loss"]))
        if losses is not None:
            losses.send(epoch_losses)
    phlox.distributed.shutdown()


def find_devices(count: int) -> list[phlox.Device]:
    """The first `count` devices; on a CPU they are virtual devices.

    Raises `ProgramError` if there are fewer.
    """
    with contextlib.suppress(phlox.errors.PhloxError):  # raises if devices were used already
        phlox.config.update("num_cpu_devices", count)
    devices = phlox.local_devices()
    if len(devices) < count:
        raise ProgramError(
            f"--devices {count}: this machine has {len(devices)}; with PHLOX_PLATFORMS=cpu set it makes virtual ones"
        )
    return devices[:count]


def compared_curves(curves: np.ndarray, name: str, title: str) -> Figure:
    """The losses of each step on one device and on several (the rows of `curves`), and their difference."""
    steps = np.arange(1, curves.shape[1] + 1)
    figure = plots.figure(title)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))

    above.plot(steps, curves[0], color=plots.BLUE, linewidth=6, alpha=0.35, label="1 device")
    above.plot(steps, curves[1], color=plots.ORANGE, linewidth=1.5, label=name)
    above.set(ylabel="loss of a step (nats)")
    above.legend(frameon=False)

    difference = np.abs(curves[0] - curves[1])
    below.set_yscale("log")
    below.set_ylim(1e-9, 30 * max(TOLERANCE, difference.max()))
    some = difference > 0
    below.plot(steps[some], difference[some], ".", color=plots.GREY)
    below.axhline(TOLERANCE, color="black", linewidth=1)
    below.annotate(
        f"at most {TOLERANCE:.0e} is allowed", (steps[-1], TOLERANCE), (0, 4), textcoords="offset points", ha="right"
    )
    below.set(xlabel="step (without a dot: no difference in 32 bits)", ylabel="difference (nats)")
    for axes in (above, below):
        plots.tidy(axes)
    return figure
