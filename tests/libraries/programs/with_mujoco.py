"""MJX: steps of rigid bodies, batched and differentiated."""

import jax
import jax.numpy as jnp
import mujoco
from common import show
from mujoco import mjx

model = mujoco.MjModel.from_xml_string(
    """<mujoco><worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body pos="0 0 .3"><freejoint/><geom type="sphere" size=".1"/></body>
    <body pos="1 0 1"><joint type="hinge" axis="0 1 0"/><geom type="capsule" size=".05 .3"/></body>
    </worldbody><actuator><motor joint="hinge" gear="1"/></actuator></mujoco>""".replace(
        '<joint type="hinge"', '<joint name="hinge" type="hinge"'
    )
)
on_device = mjx.put_model(model)
step = jax.jit(mjx.step)
state = mjx.make_data(on_device)
for _ in range(3):
    state = step(on_device, state)
show("steps", state.qpos, state.qvel)
batch = jax.vmap(lambda v: mjx.make_data(on_device).replace(qvel=jnp.full(7, v)))(jnp.linspace(0, 0.5, 3))
batch = jax.jit(jax.vmap(mjx.step, (None, 0)))(on_device, batch)
show("batch", batch.qpos, batch.qvel)
show("forward", jax.jit(mjx.forward)(on_device, state).qacc)
