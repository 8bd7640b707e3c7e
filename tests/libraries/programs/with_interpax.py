"""interpax: interpolation, with derivatives."""

import interpax
import jax
import jax.numpy as jnp
from common import show

x = jnp.linspace(0, 3, 8)
f = jnp.sin(x)
query = jnp.array([0.3, 1.1, 2.7])
for method in ("nearest", "linear", "cubic", "cubic2", "catmull-rom", "monotonic", "akima"):
    show(method, interpax.interp1d(query, x, f, method=method))
show("derivative", interpax.interp1d(query, x, f, method="cubic", derivative=1))
show("grad", jax.grad(lambda f: interpax.interp1d(query, x, f, method="cubic").sum())(f))
show("2d", interpax.interp2d(query, query, x, x, jnp.outer(f, f), method="cubic"))
show("periodic", interpax.interp1d(query + 4, x, f, method="cubic", period=3.0))
show("fourier", interpax.fft_interp1d(f, 16))
show("spline", interpax.CubicSpline(x, f)(query), interpax.PchipInterpolator(x, f)(query))
