"""`make_step`: a jitted training step from a loss and an optimizer. `Step.function` is the step.

A loss is a function of parameters and a batch. The names of its other parameters define what else it receives, and the
form of its result what else it returns.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import phlox
import phlox.numpy as jnp
from phlox.errors import ArgumentError, ShapeError
from phlox.tree_util import keystr, tree_flatten_with_path

from . import metrics
from ._guard import public
from ._state import TrainState

#: metrics that the step computes itself
_OWN = ("loss", "grad_norm", "skipped")


@dataclasses.dataclass(frozen=True)
class LossScale:
    """Dynamic scaling of the loss, so that gradients in float16 do not underflow (Micikevicius et al. 2018).

    Args:
      initial: the first scale.
      factor: the scale is divided by it after a step whose gradients are not finite, and multiplied by it after
        `period` steps with finite gradients.
      period: see `factor`.
    """

    initial: float = 2.0**15
    factor: float = 2.0
    period: int = 2000


def make_step(
    loss: Callable[..., Any],
    tx: Any,
    *,
    accumulate: int = 1,
    clip: float | None = None,
    ema: float | None = None,
    dtype: Any = None,
    loss_scale: LossScale | None = None,
    skip_nonfinite: bool = False,
    axis_name: Any = None,
    grad_norm: bool = False,
) -> Step:
    """A training step: ``train, figures = step(train, batch)``, jitted.

    Args:
      loss: ``loss(params, batch)``, and by keyword, if it has parameters of these names, ``state`` and ``key``. It
        returns a scalar, or a scalar and a dict of metrics: those of `phlox_optim.metrics`, or scalars. A loss that
        takes ``state`` returns the new one in that dict as ``"state"``.
      tx: an optimizer of phlox_optim.
      accumulate: the number of equal parts into which a batch is split along its first axis. They are processed in
        sequence; the step uses the mean of their gradients, and needs memory for one.
      clip: gradients with a greater global norm are scaled down to it.
      ema: the decay of a moving average of the parameters, ``ema * average + (1 - ema) * params``, in ``train.ema``.
      dtype: the floating-point type to compute the loss in, such as ``bfloat16``. Parameters and batch are converted
        to it; parameters, gradients and optimizer keep the dtype of the parameters.
      loss_scale: scales the loss while gradients are taken, which float16 needs. Steps whose gradients are not finite
        are skipped.
      skip_nonfinite: a step whose loss or gradients are not finite changes nothing but `step`.
      axis_name: of `pmap` or `shard_map`, over which gradients are averaged and metrics added. It is not needed for
        arrays that are sharded over devices: their gradients are those of the whole batch.
      grad_norm: whether to return the global norm of the gradients also without `clip`. It reads all gradients once
        more, which takes up to a tenth of the step of a small network.

    Returns:
      a `Step`. Its metrics: ``loss``, ``grad_norm`` (before clipping, if it is computed), ``skipped`` if steps can be
      skipped, and those of `loss`.

    >>> import phlox, phlox.numpy as jnp, phlox_optim as optim
    >>> def loss(params, batch):
    ...     x, y = batch
    ...     return jnp.mean((x @ params["w"] - y) ** 2)
    >>> step = optim.make_step(loss, optim.adam(0.1), clip=1.0)
    >>> train = step.init({"w": jnp.zeros(3)})
    >>> x = phlox.random.normal(phlox.random.key(0), (8, 3))
    >>> for _ in range(100):
    ...     train, figures = step(train, (x, x @ jnp.array([1.0, 2.0, 3.0])))
    >>> bool(figures["loss"].value() < 0.1)
    True
    """
    if int(accumulate) != accumulate or accumulate < 1:
        raise ArgumentError(f"accumulate is {accumulate!r}", instead="the number of parts of a batch, 1 or more")
    if ema is not None and not 0 <= ema < 1:
        raise ArgumentError(f"ema is {ema!r}", instead="a number from 0 to below 1, such as 0.999")
    parameters = inspect.signature(loss).parameters
    takes = tuple(name for name in ("state", "key") if name in parameters)
    return Step(loss, tx, int(accumulate), clip, ema, dtype, loss_scale, skip_nonfinite, axis_name, grad_norm, takes)


@dataclasses.dataclass(frozen=True)
class Step:
    """A training step, as `make_step` makes it: ``train, figures = step(train, batch)``.

    Calling it runs `function` jitted. It donates `train`: the old state cannot be used afterwards.
    """

    loss: Callable[..., Any]
    tx: Any
    accumulate: int
    clip: float | None
    ema: float | None
    dtype: Any
    loss_scale: LossScale | None
    skip_nonfinite: bool
    axis_name: Any
    grad_norm: bool
    takes: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "_jitted", phlox.jit(self.function, donate_argnums=0))

    def __call__(self, train: TrainState, batch: Any) -> tuple[TrainState, dict[str, metrics.Metric]]:
        return self._jitted(train, batch)  # type: ignore[attr-defined]

    def init(self, params: Any, *, state: Any = None, key: Any = None) -> TrainState:
        """The state before the first step. Arrays are copied, because the steps donate them.

        Args:
          params: the parameters.
          state: state that is not trained, for a loss that takes ``state``.
          key: the PRNG key, for a loss that takes ``key``.

        Raises:
          ArgumentError: the loss takes ``state`` or ``key``, and none is given.
        """
        for name, given in (("state", state), ("key", key)):
            if name in self.takes and given is None:
                raise ArgumentError(
                    f"the loss takes {name}, and init got none",
                    instead="step.init(params, key=phlox.random.key(0))"
                    if name == "key"
                    else "step.init(params, state=…)",
                    argument=name,
                )
        params, state, key = phlox.tree.map(jnp.copy, (params, state, key))
        return TrainState(
            params=params,
            opt_state=phlox.tree.map(jnp.copy, self.tx.init(params)),  # some optimizers return the parameters' arrays
            state=state,
            step=jnp.zeros((), jnp.int32),
            key=key,
            ema=None if self.ema is None else phlox.tree.map(jnp.copy, params),
            scale=self.loss_scale and (jnp.float32(self.loss_scale.initial), jnp.zeros((), jnp.int32)),
        )

    def function(self, train: TrainState, batch: Any) -> tuple[TrainState, dict[str, metrics.Metric]]:
        """The step as a pure function, not jitted: for `pmap`, `shard_map` and `scan`."""
        grads, state, figures = self._gradients(train, batch)
        if self.axis_name is not None:
            grads, figures = phlox.lax.pmean(grads, self.axis_name), phlox.lax.psum(figures, self.axis_name)
        kept = grads
        if self.grad_norm or self.clip is not None:
            norm = _global_norm(grads)
            figures["grad_norm"] = metrics.mean(norm)
        if self.clip is not None:
            factor = jnp.minimum(1, self.clip / jnp.maximum(norm, jnp.finfo(jnp.float32).tiny))
            kept = phlox.tree.map(lambda g: g * factor.astype(g.dtype), grads)
        update = public("with_extra_args_support")(self.tx).update
        updates, opt_state = update(kept, train.opt_state, train.params, value=figures["loss"].value())
        params = public("apply_updates")(train.params, updates)
        ema, decay = train.ema, self.ema
        if decay is not None:
            ema = phlox.tree.map(lambda old, new: (decay * old + (1 - decay) * new).astype(old.dtype), ema, params)
        new = train.replace(params=params, opt_state=opt_state, state=state, ema=ema)
        if self.skip_nonfinite or self.loss_scale is not None:
            finite = jnp.isfinite(figures["loss"].value())
            for leaf in phlox.tree.leaves(grads):
                finite &= jnp.isfinite(leaf).all()
            new = phlox.tree.map(lambda new, old: jnp.where(finite, new, old), new, train)
            new = new.replace(scale=self._rescaled(train.scale, finite))
            figures = phlox.tree.map(lambda figure: jnp.where(finite, figure, jnp.zeros_like(figure)), figures)
            figures["skipped"] = metrics.mean(~finite)
        return new.replace(step=train.step + 1), figures

    def _rescaled(self, scale: Any, finite: Any) -> Any:
        if self.loss_scale is None:
            return scale
        value, good = scale
        due = good + 1 >= self.loss_scale.period
        value = jnp.where(finite, jnp.where(due, value * self.loss_scale.factor, value), value / self.loss_scale.factor)
        return value, jnp.where(finite & ~due, good + 1, 0)

    def _gradients(self, train: TrainState, batch: Any) -> tuple[Any, Any, dict[str, metrics.Metric]]:
        """The gradients of a batch, the new state, and the metrics."""
        key = None
        if "key" in self.takes:
            key = phlox.random.fold_in(train.key, train.step)
            if self.axis_name is not None:
                key = phlox.random.fold_in(key, phlox.lax.axis_index(self.axis_name))
        if self.accumulate == 1:
            return self._part(train, train.state, batch, key)
        number = self.accumulate

        def add(carry: Any, part: Any) -> Any:
            total, state = carry
            index, batch = part
            grads, state, figures = self._part(
                train, state, batch, None if key is None else phlox.random.fold_in(key, index)
            )
            return (phlox.tree.map(jnp.add, total, grads), state), figures

        zeros = phlox.tree.map(jnp.zeros_like, train.params)
        parts = (jnp.arange(number), _cut(batch, number))
        (total, state), figures = phlox.lax.scan(add, (zeros, train.state), parts)
        return phlox.tree.map(lambda g: g / number, total), state, phlox.tree.map(lambda f: f.sum(0), figures)

    def _part(self, train: TrainState, state: Any, batch: Any, key: Any) -> tuple[Any, Any, dict[str, metrics.Metric]]:
        scale = 1 if train.scale is None else train.scale[0]

        def scaled(params: Any) -> Any:
            given = {"state": state, "key": key}
            extra = {name: given[name] for name in self.takes}
            params, converted = (params, batch) if self.dtype is None else _convert((params, batch), self.dtype)
            loss, state_after, figures = self._read(self.loss(params, converted, **extra), state)
            return (loss * scale).astype(jnp.float32), (state_after, {"loss": metrics.mean(loss), **figures})

        grads, (state_after, figures) = phlox.grad(scaled, has_aux=True)(train.params)
        return phlox.tree.map(lambda g: (g / scale).astype(g.dtype), grads), state_after, figures

    def _read(self, result: Any, state: Any) -> tuple[Any, Any, dict[str, metrics.Metric]]:
        """The loss, the new state and the metrics, from the result of the loss function."""
        loss, found = result if isinstance(result, tuple) and len(result) == 2 else (result, {})
        if not isinstance(found, Mapping):
            raise ArgumentError(
                f"the loss returned a scalar and a {type(found).__name__}",
                instead='a scalar, or a scalar and a dict of figures, such as {"accuracy": metrics.accuracy(…)}',
                argument=found,
            )
        figures = dict(found)
        if "state" in self.takes:
            if "state" not in figures:
                raise ArgumentError(
                    f"the loss takes state and returned none, but {sorted(figures)}",
                    instead='loss, {"state": state, …}',
                )
            state = figures.pop("state")
        if jnp.shape(loss) != ():
            raise ShapeError(
                f"the loss is {phlox.typeof(loss).short}, not a scalar",
                instead="its mean",
                expected=(),
                got=jnp.shape(loss),
            )
        if taken := sorted(figures.keys() & {*_OWN, "state"}):
            raise ArgumentError(
                f"the loss returned a figure named {taken[0]!r}", instead="another name", argument=taken[0]
            )
        return loss, state, {name: metrics.as_metric(name, figure) for name, figure in figures.items()}


def _global_norm(tree: Any) -> Any:
    """The norm of all elements of the tree as one vector, in float32."""
    squares = (jnp.sum(jnp.abs(leaf.astype(jnp.float32)) ** 2) for leaf in phlox.tree.leaves(tree))
    return jnp.sqrt(sum(squares, jnp.float32(0)))


def _convert(tree: Any, dtype: Any) -> Any:
    """`tree` with its floating-point arrays converted to `dtype`."""

    def convert(leaf: Any) -> Any:
        return jnp.asarray(leaf, dtype) if jnp.issubdtype(jnp.result_type(leaf), jnp.floating) else leaf

    return phlox.tree.map(convert, tree)


def _cut(batch: Any, number: int) -> Any:
    """The batch split into `number` equal parts along a new first axis."""
    pairs, structure = tree_flatten_with_path(batch)
    for path, leaf in pairs:
        if jnp.ndim(leaf) == 0 or len(leaf) % number:
            raise ShapeError(
                f"accumulate={number}: the batch's leaf {keystr(path) or 'itself'} is {phlox.typeof(leaf).short}, "
                f"whose first axis cannot be cut into {number} equal parts",
                instead=f"batches of a multiple of {number} examples",
                path=path,
                got=jnp.shape(leaf),
            )
    return structure.unflatten([jnp.reshape(x, (number, len(x) // number, *jnp.shape(x)[1:])) for _, x in pairs])
