"""einops: rearranging arrays of jax."""

import jax
import jax.numpy as jnp
from common import show
from einops import einsum, pack, rearrange, reduce, repeat, unpack

x = jnp.arange(24.0).reshape(2, 3, 4)
show("rearrange", rearrange(x, "a b c -> c (a b)"), jax.jit(lambda v: rearrange(v, "a (b d) c -> d a b c", d=3))(x))
show("reduce", reduce(x, "a b c -> a", "mean"), reduce(x, "a (b d) c -> b c", "max", d=3))
show("repeat", repeat(x, "a b c -> a (b r) c", r=2))
show("einsum", einsum(x, x, "a b c, a d c -> a b d"))
packed, shapes = pack([x, x[:, 0]], "a * c")
show("pack", packed, unpack(packed, shapes, "a * c"))
show("grad", jax.grad(lambda v: reduce(v**2, "a b c -> ", "sum"))(x))
