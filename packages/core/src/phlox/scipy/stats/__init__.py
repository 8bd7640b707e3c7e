"""``phlox.scipy.stats``: probability distributions, and statistics of samples."""

from ..._base.public_names import on_demand as _on_demand, publish as _publish

with _on_demand(__name__):
    from . import (
        bernoulli as bernoulli,
        beta as beta,
        betabinom as betabinom,
        binom as binom,
        cauchy as cauchy,
        chi2 as chi2,
        dirichlet as dirichlet,
        expon as expon,
        gamma as gamma,
        gennorm as gennorm,
        geom as geom,
        gumbel_l as gumbel_l,
        gumbel_r as gumbel_r,
        laplace as laplace,
        logistic as logistic,
        multinomial as multinomial,
        multivariate_normal as multivariate_normal,
        nbinom as nbinom,
        norm as norm,
        pareto as pareto,
        poisson as poisson,
        t as t,
        truncnorm as truncnorm,
        uniform as uniform,
        vonmises as vonmises,
        wrapcauchy as wrapcauchy,
    )
    from ._kde import gaussian_kde as gaussian_kde
    from ._samples import mode as mode, rankdata as rankdata, sem as sem

_publish(__name__)
