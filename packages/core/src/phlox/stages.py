"""``phlox.stages``: the stages of ahead-of-time compilation, as in ``jax.stages``.

A jitted function is traced to a Jaxpr, lowered to StableHLO, and compiled:

    jit(f).trace(x) -> Traced,  .lower() -> Lowered,  .compile() -> Compiled, which is called with arrays like `x`.
"""

from ._api.jit.options import CompilerOptions
from ._api.jit.stages import ArgInfo, Compiled, Lowered, Traced, Wrapped
from ._base.public_names import publish

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]


publish(__name__)
