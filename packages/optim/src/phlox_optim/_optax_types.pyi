"""Types of the functions of optax that phlox_optim lists. The functions themselves are those of the private copy."""

from collections.abc import Callable
from typing import Any, NamedTuple

from phlox.typing import ArrayLike

from ._types import Optimizer

Schedule = Callable[[Any], Any]
ScalarOrSchedule = float | ArrayLike | Schedule
Params = Any
Updates = Any
OptState = Any

class EmptyState(NamedTuple): ...

class GradientTransformation(NamedTuple):
    init: Callable[..., Any]
    update: Callable[..., Any]

def adam(
    learning_rate: ScalarOrSchedule,
    b1: ArrayLike = 0.9,
    b2: ArrayLike = 0.999,
    eps: ArrayLike = 1e-08,
    eps_root: ArrayLike = 0.0,
    mu_dtype: Any = None,
    *,
    nesterov: bool = False,
) -> GradientTransformation: ...
def adamw(
    learning_rate: ScalarOrSchedule,
    b1: ArrayLike = 0.9,
    b2: ArrayLike = 0.999,
    eps: ArrayLike = 1e-08,
    eps_root: ArrayLike = 0.0,
    mu_dtype: Any = None,
    weight_decay: ArrayLike = 0.0001,
    mask: Any = None,
    *,
    nesterov: bool = False,
) -> GradientTransformation: ...
def lion(
    learning_rate: ScalarOrSchedule,
    b1: ArrayLike = 0.9,
    b2: ArrayLike = 0.99,
    mu_dtype: Any = None,
    weight_decay: ArrayLike = 0.001,
    mask: Any = None,
) -> GradientTransformation: ...
def sgd(
    learning_rate: ScalarOrSchedule,
    momentum: ArrayLike | None = None,
    nesterov: bool = False,
    accumulator_dtype: Any = None,
) -> GradientTransformation: ...
def add_decayed_weights(weight_decay: ArrayLike = 0.0, mask: Any = None) -> GradientTransformation: ...
def chain(*args: Optimizer) -> GradientTransformation: ...
def clip(max_delta: ArrayLike) -> GradientTransformation: ...
def clip_by_block_rms(threshold: Any) -> GradientTransformation: ...
def clip_by_global_norm(max_norm: ArrayLike) -> GradientTransformation: ...
def identity() -> GradientTransformation: ...
def scale(step_size: ArrayLike) -> GradientTransformation: ...
def scale_by_adam(
    b1: ArrayLike = 0.9,
    b2: ArrayLike = 0.999,
    eps: ArrayLike = 1e-08,
    eps_root: ArrayLike = 0.0,
    mu_dtype: Any = None,
    *,
    nesterov: bool = False,
) -> GradientTransformation: ...
def scale_by_learning_rate(
    learning_rate: ScalarOrSchedule = ..., *, flip_sign: bool = True
) -> GradientTransformation: ...
def scale_by_lion(
    b1: ArrayLike = 0.9, b2: ArrayLike = 0.99, mu_dtype: Any = None, *, mode: Any = "hard", smooth_beta: float = 1.0
) -> GradientTransformation: ...
def scale_by_schedule(step_size_fn: Any) -> GradientTransformation: ...
def set_to_zero() -> GradientTransformation: ...
def trace(decay: ArrayLike, nesterov: bool = False, accumulator_dtype: Any = None) -> GradientTransformation: ...
def with_extra_args_support(tx: Optimizer) -> GradientTransformation: ...
def constant_schedule(value: Any) -> Schedule: ...
def cosine_decay_schedule(init_value: Any, decay_steps: int, alpha: Any = 0.0, exponent: Any = 1.0) -> Schedule: ...
def exponential_decay(
    init_value: Any,
    transition_steps: int,
    decay_rate: float,
    transition_begin: int = 0,
    staircase: bool = False,
    end_value: Any = None,
) -> Schedule: ...
def join_schedules(schedules: Any, boundaries: Any) -> Schedule: ...
def linear_schedule(init_value: Any, end_value: Any, transition_steps: int, transition_begin: int = 0) -> Schedule: ...
def piecewise_constant_schedule(init_value: Any, boundaries_and_scales: Any = None) -> Schedule: ...
def piecewise_interpolate_schedule(
    interpolate_type: Any, init_value: Any, boundaries_and_scales: Any = None
) -> Schedule: ...
def polynomial_schedule(
    init_value: Any, end_value: Any, power: Any, transition_steps: int, transition_begin: int = 0
) -> Schedule: ...
def warmup_cosine_decay_schedule(
    init_value: Any, peak_value: Any, warmup_steps: int, decay_steps: int, end_value: Any = 0.0, exponent: Any = 1.0
) -> Schedule: ...
def warmup_constant_schedule(init_value: Any, peak_value: Any, warmup_steps: int) -> Schedule: ...
def warmup_exponential_decay_schedule(
    init_value: Any,
    peak_value: Any,
    warmup_steps: int,
    transition_steps: int,
    decay_rate: Any,
    transition_begin: int = 0,
    staircase: bool = False,
    end_value: Any = None,
) -> Schedule: ...
def inject_hyperparams(
    inner_factory: Any, static_args: Any = ..., hyperparam_dtype: Any = None
) -> Callable[..., GradientTransformation]: ...
def masked(inner: Optimizer, mask: Any, *, mask_compatible_extra_args: bool = False) -> GradientTransformation: ...
def partition(
    transforms: Any, param_labels: Any, *, mask_compatible_extra_args: bool = False
) -> GradientTransformation: ...
def apply_updates(params: Any, updates: Any) -> Any: ...
def global_norm(updates: Any) -> Any: ...
def incremental_update(new_tensors: Any, old_tensors: Any, step_size: ArrayLike) -> Any: ...
