"""einshape: reshapes written as equations."""

import jax
import jax.numpy as jnp
from common import show
from einshape import jax_einshape

x = jnp.arange(24.0).reshape(2, 3, 4)
show("merge", jax_einshape("abc->(ab)c", x), jax_einshape("a...->...a", x))
show("split", jax_einshape("a(bd)c->abcd", x, b=3), jax_einshape("ab(cd)->(ad)bc", x, d=2))
show("tile", jax_einshape("ij->ijk", x[0], k=3), jax.jit(lambda x: jax_einshape("abc->a(bc)", x))(x))
show("gradient", jax.grad(lambda x: (jax_einshape("abc->c(ab)", x) ** 3).sum())(x))
