"""``phlox.nn``: activation functions, normalised exponentials, and initializers, as in ``jax.nn``."""

from .._base.public_names import on_demand, publish
from ._activations import (
    celu,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    log1mexp,
    logmeanexp,
    mish,
    sparse_plus,
    sparse_sigmoid,
    squareplus,
)
from ._functions import (
    elu,
    gelu,
    glu,
    identity,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    logsumexp,
    one_hot,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_sign,
    softmax,
    softplus,
    standardize,
    swish,
    tanh,
)

with on_demand(__name__):
    from . import initializers
    from ._attention import dot_product_attention
    from ._scaled import get_scaled_dot_general_config, scaled_dot_general, scaled_matmul

publish(__name__)

__all__ = [
    "celu",
    "dot_product_attention",
    "elu",
    "gelu",
    "get_scaled_dot_general_config",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "initializers",
    "leaky_relu",
    "log1mexp",
    "log_sigmoid",
    "log_softmax",
    "logmeanexp",
    "logsumexp",
    "mish",
    "one_hot",
    "relu",
    "relu6",
    "scaled_dot_general",
    "scaled_matmul",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softmax",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "standardize",
    "swish",
    "tanh",
]
