"""``phlox.interpreters``: JAX's tables of rules, for code that states primitives as JAX has it.

In phlox a primitive holds its rules; these tables read and write them there. New code says them in one statement, with
`phlox.extend.Primitive`.
"""

from . import ad, batching, mlir

__all__ = ["ad", "batching", "mlir"]


def __dir__() -> list[str]:
    return __all__
