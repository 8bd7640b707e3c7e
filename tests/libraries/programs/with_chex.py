"""chex: assertions, dataclasses, variants of tests."""

import chex
import jax
import jax.numpy as jnp
from common import show


@chex.dataclass(frozen=True)
class Pair:
    a: chex.Array
    b: chex.ArrayTree


pair = Pair(a=jnp.ones(3), b={"c": jnp.arange(2.0)})
show("dataclass", jax.tree.map(lambda v: v * 2, pair), pair.replace(a=jnp.zeros(1)))
chex.assert_shape(pair.a, (3,))
chex.assert_equal_shape([pair.a, pair.a])
chex.assert_trees_all_equal_shapes_and_dtypes(pair, pair)
chex.assert_trees_all_close(pair, pair, rtol=1e-6)
chex.assert_axis_dimension(pair.a, 0, 3)
for check in (
    lambda: chex.assert_shape(pair.a, (4,)),
    lambda: chex.assert_rank(pair.a, 2),
    lambda: chex.assert_trees_all_close(pair, jax.tree.map(lambda v: v + 1, pair)),
    lambda: chex.assert_type(pair.a, int),
):
    try:
        check()
    except AssertionError as error:
        show("refused", len(str(error)) > 10)
limited = jax.jit(chex.assert_max_traces(lambda v: v + 1, n=1))
show("traced once", limited(jnp.ones(2)), limited(jnp.ones(2)))
try:
    limited(jnp.ones(3))
except AssertionError:
    show("traced twice", 1)


class Test(chex.TestCase):
    @chex.all_variants(with_pmap=False)
    def test(self):
        f = self.variant(lambda v: v * 2)
        chex.assert_trees_all_close(f(jnp.ones(2)), 2 * jnp.ones(2))


import unittest

result = unittest.TestResult()
unittest.defaultTestLoader.loadTestsFromTestCase(Test).run(result)
show("variants", result.testsRun, len(result.failures) + len(result.errors))
numbers = chex.Dimensions(B=3)
chex.assert_shape(pair.a, numbers["B"])
