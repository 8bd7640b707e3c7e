"""`replace`: a model with other layers at some paths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phlox.errors import ArgumentError
from phlox.extend import path_matcher

from . import _paths
from ._layer import Layer, _replaced
from ._paths import Path, Pattern


def replace(model: Any, pattern: Pattern | type[Layer], new: Layer | Callable[[Any], Layer]) -> Any:
    """Returns a copy of a model with other layers in the place of those that a pattern selects.

    The model itself does not change. ``new_model.init(key, reuse=params)`` makes parameters for it: those of layers
    that stayed are taken from `params`, the others are initialized.

    Args:
      model: a layer.
      pattern: selects layers by their dotted path in the model: a glob such as ``"*/norm"``, several, a function of the
        path, or a class of layers. Of layers inside of each other the outermost is replaced.
      new: the new layer, or a function of the old one that returns it, for all that are selected.

    Returns:
      A layer of the class of `model`; for a pattern that selects the model itself, the new layer.

    Raises:
      ArgumentError: no layer is selected, or `new` is or returns something else than a layer.

    >>> import phlox
    >>> import phlox_nn as nn
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.relu, nn.Linear(8, 10))
    >>> params = model.init(phlox.random.key(0))
    >>> replace(model, "2", nn.Linear(8, 3))
    Sequential(Linear(4, 8), relu, Linear(8, 3))
    >>> replace(model, nn.Linear, lambda old: nn.WeightNorm(old))
    Sequential(WeightNorm(Linear(4, 8)), relu, WeightNorm(Linear(8, 10)))
    >>> new_params = replace(model, "2", nn.Linear(8, 3)).init(phlox.random.key(1), reuse=params)
    >>> new_params["0"]["weight"] is params["0"]["weight"], new_params["2"]["weight"].shape
    (True, (8, 3))
    """
    if isinstance(new, type) or not (isinstance(new, Layer) or callable(new)):
        name = new.__name__ if isinstance(new, type) else repr(new)
        raise ArgumentError(
            f"replace: the new layer is {name}", instead="nn.Linear(8, 3), or lambda old: nn.Remat(old)"
        )
    is_class = isinstance(pattern, type)
    by_path = path_matcher((lambda path: False) if is_class else pattern)  # type: ignore[arg-type]
    paths: list[str] = []
    count = 0

    def changed(path: Path, layer: Layer) -> Layer:
        nonlocal count
        name = _paths.text(path)
        paths.append(name)
        if isinstance(layer, pattern) if is_class else by_path(name):  # type: ignore[arg-type]
            count += 1
            result = new if isinstance(new, Layer) else new(layer)
            if not isinstance(result, Layer):
                raise ArgumentError(
                    f"replace: for {name!r} the function returned {result!r}, which is no layer",
                    instead="for example nn.Identity()",
                )
            return result
        parts = {}
        for holder, start, value in layer._plan().holders:
            before = count
            new_value = _replaced(value, start, lambda below, part: changed((*path, *below), part))
            if count > before:
                parts[holder] = new_value
        return layer.with_parts(**parts) if parts else layer

    result = changed((), model)
    if not count:
        what = pattern.__name__ if isinstance(pattern, type) else repr(pattern)
        raise ArgumentError(
            f"replace: no layer is meant by {what}",
            instead="a path of the model: " + ", ".join(repr(path) for path in paths[1:8]),
            pattern=pattern,
        )
    return result
