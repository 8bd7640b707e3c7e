"""Reports the sharding that XLA's partitioner chose for a value inside a program, by a callback during compilation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._base.native import native
from .sharding import HloSharding, from_hlo, single_device
from .text import Function, Value


def inspect_lower(f: Function, x: Value, callback: Callable[[Any], None]) -> list[Value]:
    """A lowering rule: calls `callback` with the sharding of `x` when the program is compiled."""
    module = f.module
    # Without partitions XLA's partitioner does not run, and would never call back.
    if module.partitions == 1:
        module.when_compiled.append(lambda: callback(single_device(module.devices[0])))
        return []
    ndim = x.aval.ndim

    def called(sharding: Any) -> None:
        if sharding.is_manual():  # inside of shard_map each device has a whole array of its own
            sharding = HloSharding.replicate()
        callback(from_hlo(module.devices, sharding, ndim, module.mesh_of_arguments))

    # The text holds the address of the function, so it must live as long as the module may be compiled.
    module.references.append(called)
    # Each byte as an escape of MLIR, as an address may have any byte.
    key = "".join(f"\\{byte:02X}" for byte in native.encode_inspect_sharding_callback(called))
    attributes = (
        f'call_target_name = "InspectSharding", api_version = 1 : i32, has_side_effect = true, backend_config = "{key}"'
    )
    f.op("stablehlo.custom_call", [x], [x.aval], attributes)
    return []
