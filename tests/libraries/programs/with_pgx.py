"""pgx: moves of games, batched and compiled."""

import jax
import jax.numpy as jnp
import pgx
from common import show

key = jax.random.PRNGKey(0)
game = pgx.make("tic_tac_toe")
state = jax.vmap(game.init)(jax.random.split(key, 2))
step = jax.jit(jax.vmap(game.step))
for move in (0, 4, 1, 3, 2):
    state = step(state, jnp.array([move, 8 - move]))
show("tic-tac-toe", state.legal_action_mask, state.rewards, state.current_player, state.terminated)
for name in ("go_9x9", "connect_four", "2048"):
    game = pgx.make(name)
    state = jax.jit(game.init)(key)
    state = jax.jit(game.step)(state, jnp.argmax(state.legal_action_mask), key)
    show(name, state.legal_action_mask, state.observation, state.rewards)
