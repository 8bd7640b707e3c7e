"""``phlox.scipy.stats``: probability distributions, and statistics of samples."""

from ..._base.public_names import on_demand, publish

with on_demand(__name__):
    from . import (
        bernoulli,
        beta,
        betabinom,
        binom,
        cauchy,
        chi2,
        dirichlet,
        expon,
        gamma,
        gennorm,
        geom,
        gumbel_l,
        gumbel_r,
        laplace,
        logistic,
        multinomial,
        multivariate_normal,
        nbinom,
        norm,
        pareto,
        poisson,
        t,
        truncnorm,
        uniform,
        vonmises,
        wrapcauchy,
    )
    from ._kde import gaussian_kde
    from ._samples import mode, rankdata, sem

publish(__name__)

__all__ = [
    "bernoulli",
    "beta",
    "betabinom",
    "binom",
    "cauchy",
    "chi2",
    "dirichlet",
    "expon",
    "gamma",
    "gaussian_kde",
    "gennorm",
    "geom",
    "gumbel_l",
    "gumbel_r",
    "laplace",
    "logistic",
    "mode",
    "multinomial",
    "multivariate_normal",
    "nbinom",
    "norm",
    "pareto",
    "poisson",
    "rankdata",
    "sem",
    "t",
    "truncnorm",
    "uniform",
    "vonmises",
    "wrapcauchy",
]
