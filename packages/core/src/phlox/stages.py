"""``phlox.stages``: the stages of ahead-of-time compilation, as in ``jax.stages``.

A jitted function is traced to a Jaxpr, lowered to StableHLO, and compiled:

    jit(f).trace(x) -> Traced,  .lower() -> Lowered,  .compile() -> Compiled, which is called with arrays like `x`.
"""

from ._api.jit.options import CompilerOptions
from ._api.jit.stages import ArgInfo, Compiled, Lowered, Traced, Wrapped

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]


def __dir__() -> list[str]:
    return __all__
