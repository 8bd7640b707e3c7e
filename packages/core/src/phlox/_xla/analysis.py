"""Converts StableHLO text to HLO and to StableHLO's portable form, and estimates its cost."""

from __future__ import annotations

from typing import Any

from .._base.native import hlo, native
from .bindings import context
from .devices import Device


def computation(text: str) -> Any:
    """The module as an XLA computation (HLO, not optimised)."""
    return native.mlir.mlir_module_to_xla_computation(text, use_tuple_args=False)


def hlo_text(text: str, *, metadata: bool) -> str:
    """The module as HLO text."""
    options = hlo.HloPrintOptions.short_parsable()
    options.print_metadata = metadata
    return computation(text).as_hlo_module().to_string(options)


def cost(text: str, device: Device) -> dict[str, float]:
    """XLA's cost estimates for the module, not optimised."""
    return dict(native.hlo_module_cost_analysis(device.client, computation(text).as_hlo_module()))


def portable(text: str) -> bytes:
    """The module in StableHLO's portable form, which newer jaxlibs can read, and those up to twelve weeks older."""
    from jaxlib.mlir.dialects import stablehlo

    oldest_reader = stablehlo.StablehloCompatibilityRequirement.WEEK_12
    version = stablehlo.get_version_from_compatibility_requirement(oldest_reader)
    return native.mlir.serialize_portable_artifact(text, version)


def from_portable(artifact: bytes) -> str:
    """The StableHLO text of a module in portable form."""
    with context() as known:
        return str(native.mlir.deserialize_portable_artifact(artifact, known))
