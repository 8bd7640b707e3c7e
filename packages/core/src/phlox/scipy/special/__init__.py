"""``phlox.scipy.special``: special functions."""

from ..._base.public_names import on_demand as _on_demand, publish as _publish

with _on_demand(__name__):
    from ...nn._functions import logsumexp as logsumexp
    from ._bessel import bessel_jn as bessel_jn, i0 as i0, i0e as i0e, i1 as i1, i1e as i1e
    from ._elementary import (
        boxcox as boxcox,
        boxcox1p as boxcox1p,
        entr as entr,
        erf as erf,
        erfc as erfc,
        erfcinv as erfcinv,
        erfinv as erfinv,
        expit as expit,
        kl_div as kl_div,
        log_softmax as log_softmax,
        logit as logit,
        rel_entr as rel_entr,
        softmax as softmax,
        xlog1py as xlog1py,
        xlogy as xlogy,
    )
    from ._error import dawsn as dawsn, erfcx as erfcx, owens_t as owens_t, wofz as wofz
    from ._factorials import beta as beta, comb as comb, factorial as factorial, gamma as gamma, poch as poch
    from ._gamma import (
        bernoulli as bernoulli,
        betainc as betainc,
        betaln as betaln,
        digamma as digamma,
        gammainc as gammainc,
        gammaincc as gammaincc,
        gammaln as gammaln,
        gammasgn as gammasgn,
        loggamma as loggamma,
        multigammaln as multigammaln,
        polygamma as polygamma,
    )
    from ._harmonics import lpmn as lpmn, lpmn_values as lpmn_values, sph_harm_y as sph_harm_y
    from ._integrals import exp1 as exp1, expi as expi, expn as expn, fresnel as fresnel, sici as sici, spence as spence
    from ._normal import log_ndtr as log_ndtr, ndtr as ndtr, ndtri as ndtri
    from ._series import hyp1f1 as hyp1f1, hyp2f1 as hyp2f1, zeta as zeta

_publish(__name__)
