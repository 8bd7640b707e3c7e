"""`fit` of phlox_optim as the programs use it.

It says how long a training will take, and ends a program that was stopped, or whose loss is not finite.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

import phlox_optim as optim

from . import report
from .errors import ProgramError


def fit(state: Any, step: Any, batches: Any, **options: Any) -> tuple[Any, list[dict[str, Any]]]:
    """Trains with `phlox_optim.fit`, which takes the same arguments.

    Returns the last state, and the metrics of each epoch.

    Raises:
      KeyboardInterrupt: training was interrupted. The state is saved, if there are ``checkpoints``.
      ProgramError: the loss is not finite.
    """
    checkpoints = options.get("checkpoints")
    if checkpoints is not None and (step_done := checkpoints.latest_step()) is not None:
        report.show(f"Goes on after step {step_done}, which a checkpoint has.")
    # A source may not know its length, such as a PyTorch DataLoader that is made for each epoch.
    with contextlib.suppress(TypeError):
        step = _timed(step, options["epochs"] * len(batches))
    options.setdefault("early_stopping", lambda history: not math.isfinite(history[-1]["loss"]))
    done = optim.fit(state, step, batches, **options)
    if done.ended == "interrupted":
        raise KeyboardInterrupt
    if not math.isfinite(done.history[-1]["loss"]):
        raise ProgramError("the loss has become infinite: choose a smaller --learning-rate", status=1)
    return done.state, done.history


def _timed(step: Callable[[Any, Any], Any], total: int) -> Callable[[Any, Any], Any]:
    """A step that shows from time to time how long the rest of the training will take."""
    estimate, done = report.Estimate(total), None

    def timed(state: Any, batch: Any) -> Any:
        nonlocal done
        # Read only once, as reading waits for the step. A training that goes on does not begin with step 0.
        done = (int(state.step) if done is None else done) + 1
        result = step(state, batch)
        if (line := estimate.text(done)) is not None:
            report.show(line)
        return result

    return timed
