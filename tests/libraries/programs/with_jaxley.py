"""jaxley: a cable cell with ion channels, its recordings and gradients."""

import jax
import jax.numpy as jnp
import jaxley as jx
from common import show
from jaxley.channels import HH, Leak
from jaxley.synapses import IonotropicSynapse

jax.config.update("jax_enable_x64", True)  # spikes magnify rounding

cell = jx.Cell(jx.Branch(jx.Compartment(), ncomp=2), parents=[-1, 0, 0])
cell.insert(HH())
cell.branch(2).insert(Leak())
cell.branch(1).loc(1.0).record()
cell.branch(0).loc(0.0).stimulate(jx.step_current(1.0, 2.0, 0.1, 0.025, 5.0))
show("voltage", jx.integrate(cell, delta_t=0.025)[:, ::20])
cell.make_trainable("HH_gNa")
parameters = cell.get_parameters()


def loss(parameters):
    return jnp.mean(jx.integrate(cell, params=parameters, delta_t=0.025) ** 2) / 1e3


show("loss and gradient", jax.value_and_grad(loss)(parameters))
show("checkpointed", jx.integrate(cell, checkpoint_lengths=[10, 21], delta_t=0.025)[:, ::20])

network = jx.Network([jx.Cell(jx.Branch(ncomp=1), parents=[-1]) for _ in range(3)])
network.insert(HH())
jx.connect(network[0, 0, 0], network[1, 0, 0], IonotropicSynapse())
jx.connect(network[1, 0, 0], network[2, 0, 0], IonotropicSynapse())
network.set("IonotropicSynapse_gS", 5e-4)
network[0].branch(0).loc(0.0).stimulate(jx.step_current(0.5, 1.0, 0.5, 0.025, 4.0))
network[:, 0, 0].record()
show("network", jx.integrate(network, delta_t=0.025)[:, ::20])
