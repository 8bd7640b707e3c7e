"""``./train data-parallel``: shows that training with batches split over several devices equals training on one device.

It computes in 64 bits. Several devices sum gradients in another order than one, so results differ by rounding errors.
SELU's derivative is discontinuous at 0, and at some point an activation is positive on one side and negative on the
other. In 32 bits that happens within a few epochs, and then the two trainings diverge, although both are correct.
"""

from __future__ import annotations

import argparse
import contextlib
import functools

import numpy as np

import phlox
import phlox_data

from . import digits, plots, report, results
from .errors import ProgramError
from .network import train_epoch, training
from .options import settings_of

TOLERANCE = 1e-5


def run(options: argparse.Namespace) -> None:
    """Trains on one device and on several in parallel, prints the losses of each epoch, and writes the results."""
    settings = settings_of(options)
    results.make_folder(options.out, "--out")
    phlox.config.update("enable_x64", True)
    devices = find_devices(options.devices)
    data = digits.load(settings.seed)
    steps = digits.steps(data, settings.batch_size)

    init, step, _ = training(settings, settings.epochs * steps)
    # Each device has the whole state (None) and its part of the batch, whose first axis counts devices (0).
    step_on_all = phlox.pmap(
        functools.partial(step, axis="devices"),
        axis_name="devices",
        in_axes=(None, 0),
        out_axes=None,
        devices=devices,
    )
    step_on_one = phlox.jit(step)

    batches = functools.partial(phlox_data.batches, data.train, settings.batch_size, seed=settings.seed, last="drop")
    one, many = batches(), batches(devices=devices)
    state_on_one = state_on_all = phlox.jit(init)(phlox.random.key(settings.seed))
    losses = []  # for each epoch the losses of its steps, on one device and on all of them

    with report.progress("Training", 2 * steps * settings.epochs) as shown:
        shown.row("epoch", "loss on 1 device", f"on {len(devices)}", "largest difference")
        for epoch in range(settings.epochs):
            state_on_one, first = train_epoch(step_on_one, state_on_one, shown.counted(one.epoch(epoch)))
            state_on_all, second = train_epoch(step_on_all, state_on_all, shown.counted(many.epoch(epoch)))
            losses.append((first, second))
            largest = np.abs(first - second).max()
            shown.row(f"{epoch + 1}", f"{first.mean():.10f}", f"{second.mean():.10f}", f"{largest:.1e}")

    curves = np.concatenate(losses, axis=1)
    difference = float(np.abs(curves[0] - curves[1]).max())
    same = difference <= TOLERANCE
    contents = {
        "settings": {**settings._asdict(), "devices": len(devices)},
        "losses": [{"step": n, "one_device": a, "all_devices": b} for n, (a, b) in enumerate(curves.T.tolist(), 1)],
        "largest_difference": difference,
        "tolerance": TOLERANCE,
    }
    title = f"1 device or {len(devices)}: the losses {'are the same' if same else 'DIFFER'}, to {difference:.0e}"
    figure = plots.compared_curves(curves, len(devices), TOLERANCE, title)
    written = results.write(options.out, "data-parallel", contents, figure)
    report.show(f"Largest difference of any step: {difference:.1e}. Wrote {' and '.join(written)}.")
    if not same:
        raise ProgramError(f"the losses differ by {difference:.1e}, which is more than {TOLERANCE:.0e}", status=1)


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
