"""evosax: evolution strategies on a sum of squares."""

import jax
import jax.numpy as jnp
from common import show
from evosax.algorithms import CMA_ES, PSO, DifferentialEvolution

key = jax.random.key(0)


def search(algorithm, *start):
    strategy = algorithm(population_size=8, solution=jnp.zeros(3))
    params = strategy.default_params
    state = strategy.init(key, *start, params)
    for i in range(4):
        points, state = strategy.ask(jax.random.key(i), state, params)
        state, _ = strategy.tell(jax.random.key(i + 9), points, (points**2).sum(-1), state, params)
    return points


show("cma", search(CMA_ES, jnp.zeros(3)))
population = jax.random.normal(key, (8, 3))
show("pso", search(PSO, population, (population**2).sum(-1)))
show("differential evolution", search(DifferentialEvolution, population, (population**2).sum(-1)))
