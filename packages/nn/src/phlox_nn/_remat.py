"""`Remat`: a layer whose intermediate values are not saved for the backward pass but computed again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import phlox

from ._layer import Layer
from ._torch_layout import Tensor, inside


class Remat(Layer):
    """A layer whose values are computed again in the backward pass instead of being saved (`phlox.checkpoint`).

    Computes the same as the layer alone, with less memory and about a third more time. For many equal blocks,
    ``Stack(block, count, checkpoint=True)`` does so for each of them.

    Args:
      layer: any layer, also one with state or random numbers.
      policy: what to save nevertheless, of `phlox.checkpoint_policies`; by default nothing but the inputs.

    Its part is `layer`.

    >>> import phlox
    >>> import phlox_nn as nn
    >>> model = nn.Sequential(Remat(nn.MLP((4, 64, 4))), nn.Linear(4, 2))
    >>> model.apply(model.init(phlox.random.key(0)), phlox.numpy.ones((5, 4))).shape
    (5, 2)
    """

    layer: Layer
    policy: Callable[..., Any] | None = None

    def torch_layout(self) -> Sequence[Tensor]:
        """PyTorch has no such layer: the names are those of the layer inside."""
        return [inside(part, ("layer",), "") for part in self.layer.torch_layout()]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        binding = self._bound_by
        before = dict(binding.changes)

        def run() -> tuple[Any, Any]:
            out = self.layer(*args, **kwargs)
            # Changes of the state are results: as side effects they would be tracers outside of their trace.
            return out, {path: new for path, new in binding.changes.items() if before.get(path) is not new}

        out, changes = phlox.checkpoint(run, policy=self.policy)()
        binding.changes.clear()
        binding.changes.update(before)
        for layer in self.layer.bound_layers():
            layer.update(**{path[-1]: new for path, new in changes.items() if path[:-1] == layer._path})
            for path in [path for path in changes if path[:-1] == layer._path]:
                del changes[path]
        binding.changes.update(changes)  # of blocks of a Stack, which are bound inside of its loop
        return out

    def decode(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the method `decode` of the layer, which nothing is differentiated through."""
        return self.layer.decode(*args, **kwargs)
