"""``jax.experimental.custom_partitioning``: functions that say how XLA splits them over devices.

phlox leaves the split to XLA, which partitions the operations of the function. The results are those of the function;
the rules are stored, and not called.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

BATCHING = "…"


class custom_partitioning:
    """A function with rules for its partitioning. Calls run the function."""

    def __init__(self, fun: Callable[..., Any], static_argnums: Sequence[int] = ()):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.static_argnums = static_argnums
        self.partition: Callable[..., Any] | None = None
        self.infer_sharding_from_operands: Callable[..., Any] | None = None
        self.propagate_user_sharding: Callable[..., Any] | None = None
        self.sharding_rule: Any = None

    def def_partition(
        self,
        partition: Callable[..., Any],
        infer_sharding_from_operands: Callable[..., Any] | None = None,
        propagate_user_sharding: Callable[..., Any] | None = None,
        decode_shardings: bool = True,
        sharding_rule: Any = None,
        **factors: Any,
    ) -> Callable[..., Any]:
        """Stores the rules; returns `partition`."""
        self.partition = partition
        self.infer_sharding_from_operands = infer_sharding_from_operands
        self.propagate_user_sharding = propagate_user_sharding
        self.sharding_rule = sharding_rule
        return partition

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fun(*args, **kwargs)


class CompoundFactor(tuple[str, ...]):
    """A dimension that several factors of a sharding rule make up."""

    def __new__(cls, *factors: str) -> CompoundFactor:
        if len(factors) < 2:
            raise ValueError("A compound factor should contain at least two factors")
        return super().__new__(cls, factors)


class ArrayMapping(tuple[Any, ...]):
    """The factors of the dimensions of an operand or a result."""

    def __new__(cls, *dim_mappings: Any) -> ArrayMapping:
        for d in dim_mappings:
            if not isinstance(d, str | CompoundFactor):
                raise ValueError(f"Each element of ArrayMapping must be a str or CompoundFactor, but got {type(d)}")
        return super().__new__(cls, dim_mappings)


class SdyShardingRule:
    """A sharding rule: the mappings of operands and results, and the sizes of factors."""

    def __init__(self, operand_mappings: Any, result_mappings: Any, **factor_sizes: int):
        self.operand_mappings, self.result_mappings = operand_mappings, result_mappings
        self.factor_sizes = factor_sizes
