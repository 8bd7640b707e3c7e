"""Optimizers, weight decay and frozen parameters by patterns of paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import phlox
from phlox.errors import ArgumentError
from phlox.extend import path_matcher, path_text, values_by_path
from phlox.tree_util import tree_flatten_with_path

from ._guard import public
from ._types import Optimizer

#: a glob such as ``"*/bias"``, several globs, or a function of the dotted path
Pattern = str | tuple[str, ...] | list[str] | Callable[[str], bool]


def by_path(rules: Mapping[Any, Optimizer | None]) -> Optimizer:
    """An optimizer that treats parameters by their paths: other optimizers and learning rates, or none.

    Args:
      rules: an optimizer by pattern; the first pattern that matches decides. None freezes parameters: they do not
        change, and the optimizer has no state for them. (``make_step(freeze=)`` also saves their gradients.) A pattern
        is a glob over paths such as ``"*/bias"`` or ``"encoder"`` (all below it), a tuple of globs, or a function of
        the dotted path. ``"*"`` at the end is for the others.

    Returns:
      An optimizer.

    Raises:
      ArgumentError: `rules` is no dict of optimizers; at `init`: a pattern matches nothing, or a parameter has no rule.

    >>> import phlox.numpy as jnp, phlox_optim as optim
    >>> tx = by_path({"body": None, "*/bias": optim.sgd(0.1), "*": optim.adam(1e-3)})
    >>> params = {"body": {"weight": jnp.ones(2)}, "head": {"weight": jnp.ones(2), "bias": jnp.ones(1)}}
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> updates["body"]["weight"], updates["head"]["bias"]
    (Array([0., 0.], dtype=float32), Array([-0.1], dtype=float32))
    """
    if not isinstance(rules, Mapping) or not rules:
        raise ArgumentError(
            f"by_path: rules are {rules!r:.60}", instead='a dict such as {"encoder": None, "*": optim.adam(1e-3)}'
        )
    for pattern, tx in rules.items():
        path_matcher(pattern)  # raises for what is no pattern
        if tx is not None and not (hasattr(tx, "init") and hasattr(tx, "update")):
            raise ArgumentError(
                f"by_path: the rule for {pattern!r} is {tx!r:.60}",
                instead=f"optim.adam({tx!r})" if isinstance(tx, float) else "an optimizer, or None to freeze",
                argument=pattern,
            )
    numbers = {pattern: number for number, pattern in enumerate(rules)}
    optimizers = {number: tx or public("set_to_zero")() for number, tx in enumerate(rules.values())}

    def labels(params: Any) -> Any:
        structure = phlox.tree.structure(params)
        return structure.unflatten(values_by_path("by_path", params, numbers, required=True))

    result: Optimizer = public("partition")(optimizers, labels)  # its learning_rate is that of the last rule
    return result


def path_mask(pattern: Pattern, *, exclude: bool = False) -> Callable[[Any], Any]:
    """A mask for optimizers: a function from parameters to a tree of bools, True where `pattern` matches the path.

    Args:
      pattern: a glob over paths such as ``"*/weight"``, several, or a function of the dotted path.
      exclude: whether the mask is True for the others instead.

    Returns:
      The function, for ``optim.adamw(1e-3, mask=...)`` and ``optim.masked``.

    Raises:
      ArgumentError: `pattern` is something else; of the function: it matches nothing.

    >>> import phlox_optim as optim
    >>> tx = optim.adamw(1e-3, weight_decay=0.1, mask=optim.path_mask(("*/bias", "*/norm*"), exclude=True))
    >>> path_mask("*/bias")({"weight": 1.0, "bias": 2.0})
    {'bias': True, 'weight': False}
    """
    matches = path_matcher(pattern)

    def mask(params: Any) -> Any:
        pairs, structure = tree_flatten_with_path(params)
        selected = [matches(path_text(path)) for path, _ in pairs]
        if pairs and not any(selected):
            raise ArgumentError(
                f"path_mask: no parameter is meant by the pattern {pattern!r}",
                instead=f"a pattern of paths such as {path_text(pairs[0][0])!r}",
                pattern=pattern,
            )
        return structure.unflatten([bool(here) != exclude for here in selected])

    return mask
