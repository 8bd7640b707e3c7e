"""``jax.experimental.custom_partitioning``: functions that say how XLA splits them over devices.

phlox leaves the split to XLA, which partitions the operations of the function. The results are those of the function;
the rules are stored, and not called.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

BATCHING = "…"

_FACTOR = re.compile(r"[A-Za-z]\w*")
_BATCHES = re.compile(rf"{BATCHING}\d*")
#: a compound factor, a factor, or a bracket that has no partner
_DIMENSION = re.compile(r"\([^()]*\)|[^\s()]+|[()]")


def _check_factor(factor: Any) -> None:
    if not isinstance(factor, str) or not _FACTOR.fullmatch(factor):
        raise ValueError(f"{factor!r} is no factor: factors are names of letters, digits and underscores")


class CompoundFactor(tuple[str, ...]):
    """A dimension that several factors of a sharding rule make up."""

    def __new__(cls, *factors: str) -> CompoundFactor:
        if len(factors) < 2:
            raise ValueError("A compound factor should contain at least two factors")
        for factor in factors:
            _check_factor(factor)
        return super().__new__(cls, factors)


class ArrayMapping(tuple[Any, ...]):
    """The factors of the dimensions of an operand or a result. The first may be `BATCHING`."""

    def __new__(cls, *dim_mappings: Any) -> ArrayMapping:
        for i, d in enumerate(dim_mappings):
            if not isinstance(d, str | CompoundFactor):
                raise ValueError(f"Each element of ArrayMapping must be a str or CompoundFactor, but got {type(d)}")
            if isinstance(d, str) and not (i == 0 and _BATCHES.fullmatch(d)):
                _check_factor(d)
        return super().__new__(cls, dim_mappings)


class SdyShardingRule:
    """A sharding rule: the mappings of operands and results, the factors of other kinds, and the sizes of factors."""

    def __init__(
        self,
        operand_mappings: Any,
        result_mappings: Any,
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ):
        self.operand_mappings, self.result_mappings = operand_mappings, result_mappings
        self.reduction_factors, self.need_replication_factors = reduction_factors, need_replication_factors
        self.permutation_factors, self.factor_sizes = permutation_factors, factor_sizes
        dims = [d for mapping in (*operand_mappings, *result_mappings) for d in mapping]
        whole = {d for d in dims if isinstance(d, str)}
        in_parts = {factor for d in dims if not isinstance(d, str) for factor in d} - whole
        if in_parts != set(factor_sizes):
            raise ValueError(
                f"sizes must be those of the factors that are no whole dimension, {sorted(in_parts)}, "
                f"and are of {sorted(factor_sizes)}"
            )
        special = [*reduction_factors, *need_replication_factors, *permutation_factors]
        if len(special) != len(set(special)) or not whole.union(in_parts).issuperset(special):
            raise ValueError(f"factors of other kinds, {special}, must occur in the rule and in one of the kinds once")

    def __repr__(self) -> str:
        kinds = ("reduction_factors", "need_replication_factors", "permutation_factors")
        special = "".join(f" {kind}={factors}" for kind in kinds if (factors := getattr(self, kind)))
        return f"SdyShardingRule({self.operand_mappings}, {self.result_mappings}, {self.factor_sizes}{special})"


def _parse_rule(rule: str, **factors: Any) -> SdyShardingRule:
    """The rule that a text such as ``"... i j, j k -> ... i k"`` means."""
    sides = rule.replace("...", BATCHING).split("->")
    if len(sides) != 2:
        raise ValueError(f"sharding_rule={rule!r} has not one '->'")
    operands, results = (tuple(map(_parse_mapping, side.split(","))) for side in sides)
    return SdyShardingRule(operands, results, **factors)


def _parse_mapping(text: str) -> ArrayMapping:
    dims: list[Any] = _DIMENSION.findall(text)
    return ArrayMapping(*(CompoundFactor(*d[1:-1].split()) if d.endswith(")") else d for d in dims))


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
        """Stores the rules; returns `partition`.

        Raises:
          ValueError: `sharding_rule` is no rule, or does not fit the `factors`.
        """
        if isinstance(sharding_rule, str):
            sharding_rule = _parse_rule(sharding_rule, **factors)
        elif isinstance(sharding_rule, SdyShardingRule) and factors:
            raise ValueError(f"sharding_rule has its own factors, and got {factors}")
        self.partition = partition
        self.infer_sharding_from_operands = infer_sharding_from_operands
        self.propagate_user_sharding = propagate_user_sharding
        self.sharding_rule = sharding_rule
        return partition

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fun(*args, **kwargs)
