"""jax-md: energies, forces and simulations of particles in a periodic box."""

import jax
import jax.numpy as jnp
from common import show
from jax_md import energy, minimize, quantity, simulate, space

key = jax.random.key(0)
displacement, shift = space.periodic(5.0)
positions = jax.random.uniform(key, (16, 2)) * 5
soft = energy.soft_sphere_pair(displacement)
show("energy", soft(positions), quantity.force(soft)(positions))

for name, make in {"nve": simulate.nve, "nvt": lambda e, s, dt: simulate.nvt_nose_hoover(e, s, dt, 0.1)}.items():
    start, step = make(soft, shift, dt=1e-2)
    state = start(key, positions, kT=0.1)
    for _ in range(5):
        state = step(state)
    show(name, state.position, state.momentum)

start, step = minimize.fire_descent(soft, shift)
state = start(positions)
for _ in range(5):
    state = step(state)
show("minimum", state.position)

neighbors, pairs = energy.lennard_jones_neighbor_list(displacement, 5.0, r_cutoff=1.5, dr_threshold=0.3)
lattice = jnp.stack(jnp.meshgrid(jnp.arange(4) * 1.2, jnp.arange(4) * 1.2), -1).reshape(-1, 2)
show("neighbors", pairs(lattice, neighbors.allocate(lattice)))
