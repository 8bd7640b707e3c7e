"""``phlox.interpreters``: JAX's tables of rules, for code that defines primitives in JAX's way.

In phlox a primitive holds its rules; these tables read and write the rules of primitives. New code should use
`phlox.extend.Primitive`, which takes all rules at once.
"""

from phlox.extend import publish

from . import ad, batching, mlir

__all__ = ["ad", "batching", "mlir"]


publish(__name__)
