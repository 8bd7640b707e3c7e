"""`make_step`: a jitted training step from a loss and an optimizer. `Step.function` is the step.

A loss is a function of parameters and a batch. The names of its other parameters define what else it receives, and the
form of its result what else it returns.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import phlox
import phlox.numpy as jnp
from phlox.errors import ArgumentError, DtypeError, ShapeError
from phlox.extend import path_matcher, path_text, warn
from phlox.tree_util import keystr, tree_flatten_with_path

from . import _average, metrics
from ._by_path import Pattern, by_path
from ._guard import public
from ._loss_scale import LossScale
from ._rates import rate_at
from ._state import TrainState
from ._types import Optimizer
from .errors import SkippedStepsError

#: metrics that the step computes itself
_OWN = ("loss", "learning_rate", "grad_norm", "scale", "skipped")
#: names of arrays in a batch that give its examples unequal weights
_WEIGHTS = ("lengths", "mask", "weight", "weights")


def make_step(
    loss: Callable[..., Any],
    tx: Optimizer,
    *,
    accumulate: int = 1,
    clip: float | None = None,
    ema: float | None = None,
    dtype: Any = None,
    loss_scale: LossScale | None = None,
    skip_nonfinite: bool = False,
    max_skips: int | None = 50,
    axis_name: Any = None,
    grad_norm: bool = False,
    freeze: Pattern | None = None,
    sizes: Any = None,
) -> Step:
    """A training step: ``train, figures = step(train, batch)``, jitted.

    Args:
      loss: ``loss(params, batch)``, and by keyword, if it has parameters of these names, ``state`` and ``key``. It
        returns the loss, or the loss and a dict of metrics: those of `phlox_optim.metrics`, or scalars. The loss is a
        scalar, the mean over the examples of the batch; or, if examples have a mask or weights,
        ``metrics.mean(losses, mask)``, a sum and a count, by which parts of a batch, devices and batches are weighted.
        A loss that takes ``state`` returns the new one in that dict as ``"state"``.
      tx: an optimizer of phlox_optim.
      accumulate: the number of equal parts into which a batch is split along its first axis. They are processed in
        sequence, with memory for one. The step is that of the whole batch: it uses the mean of their gradients,
        weighted by the counts of their losses (of scalar losses: equally).
      clip: gradients with a greater global norm are scaled down to it.
      ema: the decay of a moving average of the parameters, ``train.ema``, and of the state, ``train.ema_state``. The
        decay of the n-th step is lower, ``(n - 1) / (n + 8)``, until it reaches `ema`, so that the average does not
        contain the initial parameters and is useful from the first step on. See `make_evaluation`.
      dtype: the floating-point type to compute the loss in, such as ``bfloat16``. Parameters and batch are converted
        to it; parameters, gradients and optimizer keep the dtype of the parameters.
      loss_scale: scales the loss while gradients are taken, which float16 needs. Steps whose loss or gradients are not
        finite are skipped.
      skip_nonfinite: a step whose loss or gradients are not finite is skipped: it changes nothing but ``train.step``
        and ``train.skipped``.
      max_skips: how many steps in a row may be skipped; more raise `SkippedStepsError`, if the step is called itself
        and not its `function`. The number is read once in ``max_skips / 10`` steps, so that steps need not wait for
        each other. None: any number.
      axis_name: of `pmap` or `shard_map`, over which gradients are averaged, weighted by the counts of the losses, and
        metrics added. It is not needed for arrays that are sharded over devices: their gradients are those of the
        whole batch.
      grad_norm: whether to return the global norm of the gradients also without `clip`. It reads all gradients once
        more, which takes up to a tenth of the step of a small network.
      freeze: parameters that do not change, by a pattern of their paths, such as ``"encoder"`` or ``"*/bias"``.
        No gradients are computed for them, the optimizer has no state for them, and `clip` does not count them. For
        other optimizers and learning rates by path see `by_path`.
      sizes: names of the axes of a batch that vary in length, such as ``"n"`` or ``{"text": "n, time", "label": "n"}``,
        or ``"auto"`` for the first axes. One program then serves all lengths up to a bucket; see `phlox.pad_axes`.

    Returns:
      a `Step`. Its metrics: ``loss``, ``learning_rate`` (if the optimizer tells it, of several by path the last one),
      ``grad_norm`` (before clipping, if it is computed), ``scale`` (of the loss in this step, if it is scaled),
      ``skipped`` (the number of skipped steps, if steps can be skipped), and those of `loss`. Scalars are weighted by
      the number of examples, if all arrays of a batch have an equally long first axis.

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
    if max_skips is not None and (int(max_skips) != max_skips or max_skips < 1):
        raise ArgumentError(f"max_skips is {max_skips!r}", instead="a number of steps, 1 or more, or None")
    if clip is not None and not clip > 0:
        raise ArgumentError(f"clip is {clip!r}", instead="the greatest norm of the gradients, above 0, or None")
    if dtype is not None and not jnp.issubdtype(dtype, jnp.floating):
        raise ArgumentError(f"dtype is {dtype!r}", instead='a floating-point type, such as "bfloat16"')
    parameters = inspect.signature(loss).parameters
    if not (hasattr(tx, "init") and hasattr(tx, "update")):
        raise ArgumentError(
            f"make_step: the optimizer is {tx!r:.60}", instead="an optimizer, such as optim.adam(1e-3)", argument="tx"
        )
    if freeze is not None:
        tx = by_path({freeze if not isinstance(freeze, list) else tuple(freeze): None, "*": tx})
    takes = tuple(name for name in ("state", "key") if name in parameters)
    skips = skip_nonfinite or loss_scale is not None
    return Step(
        loss,
        tx,
        int(accumulate),
        clip,
        ema,
        dtype,
        loss_scale,
        skips,
        max_skips,
        axis_name,
        grad_norm,
        takes,
        freeze,
        sizes=sizes,
    )


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
    skips: bool
    max_skips: int | None
    axis_name: Any
    grad_norm: bool
    takes: tuple[str, ...]
    freeze: Pattern | None = None
    #: the shardings of the state after a step; None: as XLA chooses
    shardings: Any = None
    sizes: Any = None

    def __post_init__(self) -> None:
        out = None if self.shardings is None else (self.shardings, None)
        sizes = None if self.sizes is None else {"batch": self.sizes}
        jitted = phlox.jit(self.function, donate_argnums=0, out_shardings=out, sizes=sizes)
        object.__setattr__(self, "_jitted", jitted)
        object.__setattr__(self, "_calls", itertools.count(1))

    def __call__(self, train: TrainState, batch: Any) -> tuple[TrainState, dict[str, metrics.Metric]]:
        if self.skips and self.max_skips is not None:
            self._check_skips(train, batch, self.max_skips)
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
        for name, argument in (("state", state), ("key", key)):
            if name in self.takes and argument is None:
                raise ArgumentError(
                    f"the loss takes {name}, and init got none",
                    instead="step.init(params, key=phlox.random.key(0))"
                    if name == "key"
                    else "step.init(params, state=…)",
                    argument=name,
                )
        params, state, key = phlox.tree.map(_copied, (params, state, key))
        return TrainState(
            params=params,
            opt_state=phlox.tree.map(jnp.copy, self.tx.init(params)),  # some optimizers return the parameters' arrays
            state=state,
            step=jnp.zeros((), jnp.int32),
            key=key,
            ema=None if self.ema is None else _average.start(params),
            scale=None if self.loss_scale is None else self.loss_scale.start(),
            ema_state=None if self.ema is None else _average.start(state),
            skipped=(jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32)) if self.skips else None,
        )

    def function(self, train: TrainState, batch: Any) -> tuple[TrainState, dict[str, metrics.Metric]]:
        """The step as a pure function, not jitted: for `pmap`, `shard_map` and `scan`."""
        grads, state, figures = self._gradients(train, batch)
        if self.axis_name is not None:
            grads, figures = self._over_devices(grads, figures)
        clipped_grads = grads
        if self.grad_norm or self.clip is not None:
            norm = _global_norm(grads)
            figures["grad_norm"] = metrics.mean(norm)
        if self.clip is not None:
            factor = jnp.minimum(1, self.clip / jnp.maximum(norm, jnp.finfo(jnp.float32).tiny))
            clipped_grads = phlox.tree.map(lambda g: g * factor.astype(g.dtype), grads)
        update = public("with_extra_args_support")(self.tx).update
        updates, opt_state = update(clipped_grads, train.opt_state, train.params, value=figures["loss"].value())
        rate = rate_at(self.tx, opt_state, train.step if train.skipped is None else train.step - train.skipped[0])
        if train.rate_scale is not None:
            updates = phlox.tree.map(lambda u: u * train.rate_scale.astype(u.dtype), updates)
            rate = None if rate is None else rate * train.rate_scale
        if rate is not None:
            figures["learning_rate"] = metrics.mean(rate)
        params = public("apply_updates")(train.params, updates)
        new = self._averaged(train.replace(params=params, opt_state=opt_state, state=state))
        if self.skips:
            new, figures = self._unless_nonfinite(train, new, grads, figures)
        return new.replace(step=train.step + 1), figures

    def _over_devices(self, grads: Any, figures: Any) -> tuple[Any, dict[str, metrics.Metric]]:
        """The gradients of the batches of all devices as one, and the metrics of all."""
        count, figures = figures["loss"].count, metrics.over_devices(figures, self.axis_name)
        share = metrics.divide(count, figures["loss"].count)
        return phlox.lax.psum(phlox.tree.map(lambda g: g * share.astype(g.dtype), grads), self.axis_name), figures

    def _averaged(self, new: TrainState) -> TrainState:
        """The state after a step with new averages; its numbers of steps are still those before."""
        if self.ema is None:
            return new
        weight = _average.weight(self.ema, new.step if new.skipped is None else new.step - new.skipped[0])
        return new.replace(
            ema=_average.moved(new.ema, new.params, weight),
            ema_state=_average.moved(new.ema_state, new.state, weight),
        )

    def _unless_nonfinite(
        self, old: TrainState, new: TrainState, grads: Any, figures: dict[str, metrics.Metric]
    ) -> tuple[TrainState, dict[str, metrics.Metric]]:
        """The state and the metrics after the step; those of a skipped step if loss or gradients are not finite."""
        loss_is_finite = jnp.isfinite(figures["loss"].value())
        grads_are_finite = jnp.bool_(True)
        for leaf in phlox.tree.leaves(grads):
            grads_are_finite &= jnp.isfinite(leaf).all()
        finite = loss_is_finite & grads_are_finite
        new = phlox.tree.map(lambda new, old: jnp.where(finite, new, old), new, old)
        total, in_a_row = old.skipped
        new = new.replace(skipped=(jnp.where(finite, total, total + 1), jnp.where(finite, 0, in_a_row + 1)))
        figures = phlox.tree.map(lambda figure: jnp.where(finite, figure, jnp.zeros_like(figure)), figures)
        if self.loss_scale is not None:
            new = new.replace(scale=self.loss_scale.after(old.scale, finite, loss_is_finite & ~grads_are_finite))
            figures["scale"] = metrics.mean(old.scale[0])
        figures["skipped"] = metrics.Sum((~finite).astype(jnp.int32))
        return new, figures

    def _check_skips(self, train: TrainState, batch: Any, most: int) -> None:
        """Raises `SkippedStepsError` if at least `most` steps in a row were skipped; looks only now and then."""
        in_a_row, scale = train.skipped[1], None if train.scale is None else train.scale[0]
        if isinstance(in_a_row, phlox.core.Tracer) or jnp.shape(in_a_row) != ():
            return
        # Reading the number waits for the step before.
        if next(self._calls) % max(1, most // 10) or int(in_a_row) < most:  # type: ignore[attr-defined]
            return
        raise SkippedStepsError(
            f"the last {int(in_a_row)} steps (to step {int(train.step)}) were skipped, because their loss or gradients "
            f"were not finite. {self._findings(train, batch)}",
            instead="data without nan and infinity, a lower learning rate, or max_skips= for more such steps",
            step=int(train.step),
            skipped=int(in_a_row),
            scale=None if scale is None else float(scale),
        )

    def _findings(self, train: TrainState, batch: Any) -> str:
        """The parts of a step with this batch that are not finite, as sentences."""
        grads, _, figures = phlox.jit(self._gradients)(train, batch)
        parts = {"the batch": batch, "the parameters": train.params, "the loss": figures["loss"].value()}
        descriptions = [_nonfinite(name, tree) for name, tree in {**parts, "the gradients": grads}.items()]
        scale = "" if train.scale is None else f" The loss scale is {float(train.scale[0]):g}."
        return f"Not finite in the next step: {', '.join(filter(None, descriptions)) or 'nothing'}.{scale}"

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
            mean: Any = figures["loss"]

            def plus(total: Any, grad: Any) -> Any:
                return total + jnp.asarray(grad, total.dtype) * jnp.asarray(mean.count, total.dtype)

            return (phlox.tree.map(plus, total, grads), state), figures

        # In 32 bits, because counts may be large and sums of 16 bits lose small terms.
        zeros = phlox.tree.map(lambda p: jnp.zeros_like(p, _average.wide(p)), train.params)
        parts = (jnp.arange(number), _cut(batch, number))
        (total, state), figures = phlox.lax.scan(add, (zeros, train.state), parts)
        figures = metrics.merge_stacked(figures)
        loss: Any = figures["loss"]

        def divided(total: Any, param: Any) -> Any:
            return metrics.divide(total, jnp.asarray(loss.count, total.dtype)).astype(param.dtype)

        return phlox.tree.map(divided, total, train.params), state, figures

    def _part(self, train: TrainState, state: Any, batch: Any, key: Any) -> tuple[Any, Any, dict[str, metrics.Metric]]:
        scale = 1 if train.scale is None else train.scale[0]

        def scaled(params: Any) -> Any:
            arguments = {"state": state, "key": key}
            extra = {name: arguments[name] for name in self.takes}
            params = self._stopped(params)
            params, converted = (params, batch) if self.dtype is None else _convert((params, batch), self.dtype)
            mean, state_after, figures = self._read(self.loss(params, converted, **extra), state, batch)
            loss = metrics.divide(mean.total, phlox.lax.stop_gradient(mean.count))
            return (loss * scale).astype(jnp.float32), (state_after, {"loss": mean, **figures})

        grads, (state_after, figures) = phlox.grad(scaled, has_aux=True)(train.params)
        return phlox.tree.map(lambda g: (g / scale).astype(g.dtype), grads), state_after, figures

    def _stopped(self, params: Any) -> Any:
        """The parameters without derivatives by those that are frozen, so that XLA does not compute them."""
        if self.freeze is None:
            return params
        pairs, structure = tree_flatten_with_path(params)
        frozen = path_matcher(self.freeze)
        return structure.unflatten(
            [phlox.lax.stop_gradient(leaf) if frozen(path_text(path)) else leaf for path, leaf in pairs]
        )

    def _read(self, result: Any, state: Any, batch: Any) -> tuple[metrics.Mean, Any, dict[str, metrics.Metric]]:
        """The loss, the new state and the metrics, from the result of the loss function."""
        loss, *auxes = result if isinstance(result, tuple) else (result,)
        aux = auxes[0] if auxes else {}
        if len(auxes) > 1 or not isinstance(aux, Mapping):
            kinds = " and a ".join(type(aux).__name__ for aux in auxes)
            raise ArgumentError(
                f"the loss returned a scalar and a {kinds}",
                instead='a scalar, or a scalar and a dict of figures, such as {"accuracy": metrics.accuracy(…)}',
                argument=aux,
            )
        figures = dict(aux)
        if "state" in self.takes:
            if "state" not in figures:
                raise ArgumentError(
                    f"the loss takes state and returned none, but {sorted(figures)}",
                    instead='loss, {"state": state, …}',
                )
            state = figures.pop("state")
        if conflicts := sorted(figures.keys() & {*_OWN, "state"}):
            raise ArgumentError(
                f"the loss returned a figure named {conflicts[0]!r}", instead="another name", argument=conflicts[0]
            )
        examples = metrics.examples_in(batch)
        figures = {name: metrics.as_metric(name, figure, examples) for name, figure in figures.items()}
        return self._as_mean(loss, batch, examples), state, figures

    def _as_mean(self, loss: Any, batch: Any, examples: int) -> metrics.Mean:
        """The loss of a batch as a sum and a count. Warns if it is a scalar that cannot be combined with others."""
        is_mean = type(loss) is metrics.Mean
        total = loss.total if is_mean else loss
        if jnp.shape(total) != () or (is_mean and jnp.shape(loss.count) != ()):
            raise ShapeError(
                f"the loss is {phlox.typeof(total).short}, not a scalar",
                instead="its mean, or metrics.mean(losses, mask)",
                expected=(),
                got=jnp.shape(total),
            )
        if not jnp.issubdtype(jnp.result_type(total), jnp.floating):
            raise DtypeError(f"the loss is {phlox.typeof(total).short}, which has no gradient", instead="a real number")
        if is_mean:
            return metrics.Mean(jnp.asarray(total, jnp.float32), jnp.asarray(loss.count, jnp.float32))
        weights = _weights_in(batch)
        if weights and (self.accumulate > 1 or self.axis_name is not None):
            several = f"accumulate={self.accumulate}" if self.accumulate > 1 else f"axis_name={self.axis_name!r}"
            warn(
                f"make_step({several}): the batch has {weights}, and the loss is a scalar. Parts of a batch count "
                "equally, however many examples are masked; a loss metrics.mean(losses, mask) counts them",
                UserWarning,
            )
        scalar = metrics.as_metric("loss", loss, examples)
        assert isinstance(scalar, metrics.Mean)
        return scalar


def _copied(x: Any) -> Any:
    """A copy of an array, or of a number, whose weak type would make the second step another program."""
    copy = jnp.copy(x)
    # The programs of the examples also run on jax, whose arrays of keys have no such attribute.
    return copy.astype(copy.dtype) if getattr(copy, "weak_type", False) else copy


def _global_norm(tree: Any) -> Any:
    """The norm of all elements of the tree as one vector, in float32."""
    squares = (jnp.sum(jnp.abs(leaf).astype(jnp.float32) ** 2) for leaf in phlox.tree.leaves(tree))
    return jnp.sqrt(sum(squares, jnp.float32(0)))


def _nonfinite(name: str, tree: Any) -> str:
    """`name` and the paths of leaves in the tree that are not finite; an empty text if there are none."""
    leaves = [
        (path, x) for path, x in tree_flatten_with_path(tree)[0] if jnp.issubdtype(jnp.result_type(x), jnp.inexact)
    ]
    bad = [keystr(path) for path, x in leaves if not bool(jnp.isfinite(x).all())]
    more = f" and {len(bad) - 3} more" if len(bad) > 3 else ""
    return f"{name}{' at ' if any(bad) else ''}{', '.join(bad[:3])}{more}" if bad else ""


def _weights_in(batch: Any) -> str:
    """The path of an array in the batch that is a mask or weights by its name; an empty text if there is none."""
    for path, _ in tree_flatten_with_path(batch)[0]:
        if any(keystr((key,), simple=True) in _WEIGHTS for key in path):
            return keystr(path)
    return ""


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
