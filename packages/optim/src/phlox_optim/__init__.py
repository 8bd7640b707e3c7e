"""phlox_optim: optimizers and checkpoints.

    import phlox_optim as optim

    adam = optim.chain(optim.clip_by_global_norm(1.0), optim.adam(1e-3))
    state = adam.init(params)
    updates, state = adam.update(grads, state, params)
    params = optim.apply_updates(params, updates)

The optimizers are optax's own code, loaded a second time with phlox in place of jax (see `phlox.adopt`), so optax's
documentation applies. ``import optax`` and ``import jax`` are not changed. The names listed here are tested
against optax on jax. Every other name of optax is available as ``phlox_optim.name``; if it needs a name of jax that
phlox does not have, its use raises an error with that name.

`make_step` makes a training step from a loss and an optimizer, `fit` runs it over epochs. `phlox_optim.metrics` has
metrics, `phlox_optim.logging` writes them to files. `phlox_optim.checkpoint` saves and restores trees with orbax.
"""

import os as _os
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any

from phlox.extend import hide_frames as _hide_frames

from . import checkpoint as checkpoint, errors as errors, logging as logging, metrics as metrics
from ._by_path import by_path as by_path, path_mask as path_mask
from ._callbacks import Best as Best, EarlyStopping as EarlyStopping, ReduceOnPlateau as ReduceOnPlateau
from ._evaluation import make_evaluation as make_evaluation
from ._fit import Fitted as Fitted, fit as fit
from ._loss_scale import LossScale as LossScale
from ._range_test import RangeTest as RangeTest, range_test as range_test
from ._state import TrainState as TrainState
from ._step import Step as Step, make_step as make_step

# The types of the names below, which `__getattr__` returns when a program runs.
if _TYPE_CHECKING:
    from ._optax_types import (
        EmptyState as EmptyState,
        GradientTransformation as GradientTransformation,
        OptState as OptState,
        Params as Params,
        Schedule as Schedule,
        Updates as Updates,
        adam as adam,
        adamw as adamw,
        add_decayed_weights as add_decayed_weights,
        apply_updates as apply_updates,
        chain as chain,
        clip as clip,
        clip_by_block_rms as clip_by_block_rms,
        clip_by_global_norm as clip_by_global_norm,
        constant_schedule as constant_schedule,
        cosine_decay_schedule as cosine_decay_schedule,
        exponential_decay as exponential_decay,
        global_norm as global_norm,
        identity as identity,
        incremental_update as incremental_update,
        inject_hyperparams as inject_hyperparams,
        join_schedules as join_schedules,
        linear_schedule as linear_schedule,
        lion as lion,
        masked as masked,
        partition as partition,
        piecewise_constant_schedule as piecewise_constant_schedule,
        piecewise_interpolate_schedule as piecewise_interpolate_schedule,
        polynomial_schedule as polynomial_schedule,
        scale as scale,
        scale_by_adam as scale_by_adam,
        scale_by_learning_rate as scale_by_learning_rate,
        scale_by_lion as scale_by_lion,
        scale_by_schedule as scale_by_schedule,
        set_to_zero as set_to_zero,
        sgd as sgd,
        trace as trace,
        warmup_constant_schedule as warmup_constant_schedule,
        warmup_cosine_decay_schedule as warmup_cosine_decay_schedule,
        warmup_exponential_decay_schedule as warmup_exponential_decay_schedule,
        with_extra_args_support as with_extra_args_support,
    )

_TESTED = [
    # optimizers
    *("adam", "adamw", "lion", "sgd"),
    # transformations for `chain`
    *("add_decayed_weights", "chain", "clip", "clip_by_block_rms", "clip_by_global_norm", "identity", "scale"),
    *("scale_by_adam", "scale_by_learning_rate", "scale_by_lion", "scale_by_schedule", "set_to_zero", "trace"),
    *("with_extra_args_support",),
    # schedules
    *("constant_schedule", "cosine_decay_schedule", "exponential_decay", "join_schedules", "linear_schedule"),
    *("piecewise_constant_schedule", "piecewise_interpolate_schedule", "polynomial_schedule"),
    *("warmup_cosine_decay_schedule", "warmup_constant_schedule", "warmup_exponential_decay_schedule"),
    # wrappers
    *("inject_hyperparams", "masked", "partition"),
    # the rest
    *("EmptyState", "GradientTransformation", "OptState", "Params", "Schedule", "Updates"),
    *("apply_updates", "global_norm", "incremental_update"),
]

_TRAINING = ["Best", "EarlyStopping", "Fitted", "LossScale", "RangeTest", "ReduceOnPlateau", "Step", "TrainState"]
_TRAINING += ["by_path", "fit", "make_evaluation", "make_step", "path_mask", "range_test"]

__version__ = "0.1.0"
__all__ = ["checkpoint", "errors", "logging", "metrics", *_TRAINING, *_TESTED]


def __getattr__(name: str) -> _Any:
    """A name of optax, imported at its first use."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ._guard import public

    value = globals()[name] = public(name)
    return value


def __dir__() -> list[str]:
    from ._guard import names

    return sorted({*__all__, *names()})


# Errors point at the user's line that calls an optimizer, not into this package.
_hide_frames(_os.path.dirname(__file__))
