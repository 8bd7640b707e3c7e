"""``phlox.nn``: activation functions, normalised exponentials, and initializers, as in ``jax.nn``."""

from .._base.public_names import on_demand as _on_demand, publish as _publish
from ._activations import (
    celu as celu,
    hard_sigmoid as hard_sigmoid,
    hard_silu as hard_silu,
    hard_swish as hard_swish,
    hard_tanh as hard_tanh,
    log1mexp as log1mexp,
    logmeanexp as logmeanexp,
    mish as mish,
    sparse_plus as sparse_plus,
    sparse_sigmoid as sparse_sigmoid,
    squareplus as squareplus,
)
from ._functions import (
    elu as elu,
    gelu as gelu,
    glu as glu,
    identity as identity,
    leaky_relu as leaky_relu,
    log_sigmoid as log_sigmoid,
    log_softmax as log_softmax,
    logsumexp as logsumexp,
    one_hot as one_hot,
    relu as relu,
    relu6 as relu6,
    selu as selu,
    sigmoid as sigmoid,
    silu as silu,
    soft_sign as soft_sign,
    softmax as softmax,
    softplus as softplus,
    standardize as standardize,
    swish as swish,
    tanh as tanh,
)

with _on_demand(__name__):
    from . import initializers as initializers
    from ._attention import dot_product_attention as dot_product_attention
    from ._scaled import (
        get_scaled_dot_general_config as get_scaled_dot_general_config,
        scaled_dot_general as scaled_dot_general,
        scaled_matmul as scaled_matmul,
    )

_publish(__name__)
