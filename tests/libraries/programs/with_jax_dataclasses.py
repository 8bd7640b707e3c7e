"""jax_dataclasses: dataclasses as trees."""

import jax
import jax.numpy as jnp
import jax_dataclasses as jdc
from common import show


@jdc.pytree_dataclass
class State:
    """Arrays beside a static name."""

    x: jax.Array
    scale: jdc.Static[float] = 2.0


@jdc.jit
def scaled(state: State, power: jdc.Static[int]) -> State:
    """The state to a power."""
    with jdc.copy_and_mutate(state) as out:
        out.x = state.x**power * state.scale
    return out


state = State(jnp.arange(4.0))
show("jit", scaled(state, 2), jax.grad(lambda s: (scaled(s, 3).x).sum())(state))
show("vmap", jax.vmap(lambda s: scaled(s, 2))(State(jnp.ones((3, 2)))))
show("replace", jdc.replace(state, x=state.x + 1), jdc.asdict(state)["x"])
