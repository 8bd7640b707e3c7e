"""`fit` of phlox_optim as the programs use it: it ends a program that was stopped, or whose loss is not finite."""

from __future__ import annotations

import math
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
    options.setdefault("early_stopping", lambda history: not math.isfinite(history[-1]["loss"]))
    done = optim.fit(state, step, batches, **options)
    if done.ended == "interrupted":
        raise KeyboardInterrupt
    if not math.isfinite(done.history[-1]["loss"]):
        raise ProgramError("the loss has become infinite: choose a smaller --learning-rate", status=1)
    return done.state, done.history
