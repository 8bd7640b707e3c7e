"""netket: variational ground states."""

import jax
import netket as nk
import optax
from common import show

hilbert = nk.hilbert.Spin(0.5, 4)
hamiltonian = nk.operator.IsingJax(hilbert, graph=nk.graph.Chain(4), h=1.0)
show("states", hilbert.all_states(), hamiltonian.to_dense())
state = nk.vqs.FullSumState(hilbert, nk.models.RBM(alpha=1, param_dtype=float), seed=0)
show("energy", state.expect(hamiltonian).mean)
show("gradient", state.expect_and_grad(hamiltonian)[1])
sampler = nk.sampler.MetropolisLocal(hilbert, n_chains=4)
sampled = nk.vqs.MCState(sampler, nk.models.RBM(alpha=1, param_dtype=float), n_samples=16, seed=0, sampler_seed=1)
show("samples", sampled.samples)
driver = nk.driver.VMC(hamiltonian, optax.sgd(0.1), variational_state=sampled)
driver.run(2, show_progress=False)
show("run", sampled.parameters, jax.numpy.zeros(1))

complex_model = nk.models.RBM(alpha=1, param_dtype=complex)
natural = nk.vqs.MCState(sampler, complex_model, n_samples=16, seed=0, sampler_seed=1)
driver = nk.driver.VMC_SR(hamiltonian, optax.sgd(0.05), variational_state=natural, diag_shift=0.05, momentum=0.5)
driver.run(2, show_progress=False)
show("natural gradient", natural.parameters)
target = nk.vqs.MCState(sampler, complex_model, n_samples=16, seed=2, sampler_seed=3)
driver = nk.driver.Infidelity_SR(target, optax.sgd(0.05), variational_state=natural, diag_shift=0.05)
driver.run(2, show_progress=False)
show("infidelity", natural.parameters)
