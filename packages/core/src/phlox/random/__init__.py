"""``phlox.random``: random numbers from explicit keys, the same streams as ``jax.random``.

    key = random.key(0)
    key, subkey = random.split(key)
    x = random.normal(subkey, (3,))

Functions take new-style keys (`key`) and old-style ones (`PRNGKey`, arrays of two uint32).
"""

from .._base.public_names import on_demand as _on_demand, publish as _publish

with _on_demand(__name__):
    from .._ops.random.gamma import random_gamma as random_gamma_p  # noqa: F401  (a name of jax)
    from ..typing import Key as Key
    from ._choices import categorical as categorical, choice as choice, geometric as geometric, rademacher as rademacher
    from ._counts import binomial as binomial, multinomial as multinomial, poisson as poisson
    from ._distributions import (
        cauchy as cauchy,
        double_sided_maxwell as double_sided_maxwell,
        exponential as exponential,
        gumbel as gumbel,
        laplace as laplace,
        logistic as logistic,
        lognormal as lognormal,
        maxwell as maxwell,
        pareto as pareto,
        rayleigh as rayleigh,
        triangular as triangular,
        wald as wald,
        weibull_min as weibull_min,
    )
    from ._gammas import (
        ball as ball,
        beta as beta,
        chisquare as chisquare,
        dirichlet as dirichlet,
        f as f,
        gamma as gamma,
        generalized_normal as generalized_normal,
        loggamma as loggamma,
        t as t,
    )
    from ._keys import (
        PRNGKey as PRNGKey,
        clone as clone,
        fold_in as fold_in,
        key as key,
        key_data as key_data,
        key_dtype as key_dtype,
        key_impl as key_impl,
        split as split,
        wrap_key_data as wrap_key_data,
    )
    from ._samplers import (
        bernoulli as bernoulli,
        bits as bits,
        normal as normal,
        permutation as permutation,
        randint as randint,
        truncated_normal as truncated_normal,
        uniform as uniform,
    )
    from ._vectors import multivariate_normal as multivariate_normal, orthogonal as orthogonal

_publish(__name__)
