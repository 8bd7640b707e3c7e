"""PennyLane: quantum circuits whose parameters are differentiated."""

import jax
import jax.numpy as jnp
import pennylane as qml
from common import show

jax.config.update("jax_enable_x64", True)
device = qml.device("default.qubit", wires=2)


@qml.qnode(device, interface="jax")
def circuit(params, x):
    qml.RX(x, wires=0)
    qml.RY(params[0], wires=0)
    qml.CNOT(wires=[0, 1])
    qml.Rot(*params[1], wires=1)
    return qml.expval(qml.PauliZ(0) @ qml.PauliX(1))


params = (jnp.array(0.3), jnp.array([0.1, 0.2, 0.3]))
show("value", circuit(params, 0.5))
show("grad", jax.grad(circuit)(params, 0.5))
show("jit", jax.jit(circuit)(params, 0.5), jax.jit(jax.grad(circuit))(params, 0.5))
show("vmap", jax.vmap(circuit, (None, 0))(params, jnp.linspace(0, 1, 3)))
show("hessian", jax.hessian(circuit)(params, 0.5))


@qml.qnode(device, interface="jax", diff_method="parameter-shift")
def probabilities(x):
    qml.RX(x[0], wires=0)
    qml.RY(x[1], wires=1)
    qml.CZ(wires=[0, 1])
    return qml.probs(wires=[0, 1])


show("jacobian", jax.jacobian(probabilities)(jnp.array([0.3, 0.4])))
show("state", qml.QNode(lambda x: (qml.Hadamard(0), qml.RZ(x, 0), qml.state())[-1], device)(jnp.array(0.7)))
hamiltonian = qml.Hamiltonian([0.5, -0.2], [qml.PauliZ(0), qml.PauliX(0) @ qml.PauliX(1)])


@qml.qnode(device)
def energy(x):
    qml.RY(x[0], 0)
    qml.RY(x[1], 1)
    qml.CNOT([0, 1])
    return qml.expval(hamiltonian)


x = jnp.array([0.1, 0.2])
for _ in range(5):
    x = x - 0.2 * jax.grad(energy)(x)
show("descent", x, energy(x))
