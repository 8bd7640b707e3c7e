"""jaxtyping: shapes in annotations."""

import jax
import jax.numpy as jnp
from common import show
from jaxtyping import Array, Float, Int, PyTree, Shaped, jaxtyped

x = jnp.ones((2, 3))
show(
    "isinstance",
    isinstance(x, Float[Array, "a b"]),
    isinstance(x, Int[Array, "a b"]),
    isinstance(x, Float[Array, "3 b"]),
    isinstance(x, Shaped[Array, "..."]),
)
show("tree", isinstance({"a": x}, PyTree[Float[Array, "..."]]), isinstance({"a": 1}, PyTree[Float[Array, "..."]]))


@jaxtyped(typechecker=None)
def f(x: Float[Array, "a b"]) -> Float[Array, "b"]:  # noqa: F722, F821
    assert isinstance(x, Float[jax.Array, "a b"])
    return x.sum(0)


show("function", f(x), jax.jit(f)(x))
