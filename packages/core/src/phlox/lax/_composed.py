"""Operations that are primitives in JAX, and here functions of other primitives.

Code that interprets Jaxprs names them in its tables, as ``rules[lax.tile_p] = ...``. No Jaxpr of phlox contains them,
so such a rule is never asked for, and the rules of the primitives that they consist of do the work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._api.devices.transfers import device_put
from ._exchange import ragged_all_to_all
from ._more import scatter_sub, stack, tile, unstack
from ._polynomials import polynomial
from ._tokens import after_all, create_token


class Composed:
    """What stands for a primitive of JAX: `bind` takes its operands and parameters, and calls a function."""

    def __init__(self, name: str, function: Callable[..., Any], multiple_results: bool = False):
        self.name, self.function, self.multiple_results = name, function, multiple_results

    def bind(self, *operands: Any, **params: Any) -> Any:
        """The results of the operation.

        Args:
          *operands: arrays.
          **params: the parameters that JAX's primitive has.

        Returns:
          An array, or a list of arrays if `multiple_results` is true.
        """
        return self.function(*operands, **params)

    def __repr__(self) -> str:
        return self.name


def _moved(*xs: Any, devices: Any, srcs: Any = None, copy_semantics: Any = None) -> list[Any]:
    return [device_put(x, device) for x, device in zip(xs, devices, strict=True)]


def _subtracted(operand: Any, indices: Any, updates: Any, *, update_jaxpr: Any = None, **params: Any) -> Any:
    params.pop("update_consts", None)
    return scatter_sub(operand, indices, updates, **params)


#: by JAX's name
COMPOSED = {
    "after_all_p": Composed("after_all", after_all),
    "create_token_p": Composed("create_token", create_token),
    "device_put_p": Composed("device_put", _moved, multiple_results=True),
    "polynomial_p": Composed("polynomial", lambda x, *coeffs, unroll=None: polynomial(x, coeffs, unroll=unroll)),
    "ragged_all_to_all_p": Composed("ragged_all_to_all", ragged_all_to_all),
    "scatter_sub_p": Composed("scatter-sub", _subtracted),
    "stack_p": Composed("stack", lambda *xs, axis: stack(xs, axis=axis)),
    "tile_p": Composed("tile", lambda x, *, reps: tile(x, reps)),
    "unstack_p": Composed("unstack", lambda x, *, axis: list(unstack(x, axis=axis)), multiple_results=True),
}
