"""``phlox.scipy.linalg``: SciPy's linear algebra. See also `phlox.numpy.linalg` and `phlox.lax.linalg`."""

from ..._base.public_names import on_demand as _on_demand, publish as _publish

with _on_demand(__name__):
    from ._factors import (
        cho_factor as cho_factor,
        cholesky as cholesky,
        eigh as eigh,
        hessenberg as hessenberg,
        lu as lu,
        lu_factor as lu_factor,
        qr as qr,
        qr_multiply as qr_multiply,
        schur as schur,
        svd as svd,
    )
    from ._functions import (
        expm as expm,
        expm_frechet as expm_frechet,
        funm as funm,
        polar as polar,
        rsf2csf as rsf2csf,
        solve_sylvester as solve_sylvester,
        sqrtm as sqrtm,
    )
    from ._special import (
        block_diag as block_diag,
        circulant as circulant,
        companion as companion,
        convolution_matrix as convolution_matrix,
        dft as dft,
        fiedler as fiedler,
        fiedler_companion as fiedler_companion,
        hadamard as hadamard,
        hankel as hankel,
        helmert as helmert,
        hilbert as hilbert,
        invhilbert as invhilbert,
        invpascal as invpascal,
        leslie as leslie,
        pascal as pascal,
        toeplitz as toeplitz,
    )
    from ._systems import (
        cho_solve as cho_solve,
        det as det,
        inv as inv,
        lu_solve as lu_solve,
        solve as solve,
        solve_triangular as solve_triangular,
    )
    from ._tridiagonal import eigh_tridiagonal as eigh_tridiagonal

_publish(__name__)
