"""``phlox.example_libraries.stax``: layers as pairs of functions, as in ``jax.example_libraries.stax``.

    init, apply = serial(Dense(128), Relu, Dropout(0.9), Dense(10), LogSoftmax)
    output_shape, params = init(phlox.random.key(0), (-1, 64))
    scores = apply(params, inputs, rng=phlox.random.key(1))

A key gives the same parameters as in JAX. A layer is any pair ``(init, apply)``:

    init(rng, input_shape) -> (output_shape, params)      -1 is a length that is not known yet, that of the batch
    apply(params, inputs, *, rng=None, **kwargs) -> outputs

New programs should use `phlox_nn`.
"""

from phlox.extend import publish
from phlox.nn import elu, gelu, leaky_relu, log_softmax, relu, selu, sigmoid, softmax, softplus, standardize
from phlox.nn.initializers import glorot_normal, normal, ones, zeros

from ._combine import FanInConcat, FanInSum, FanOut, parallel, serial, shape_dependent
from ._convolution import Conv, Conv1DTranspose, ConvTranspose, GeneralConv, GeneralConvTranspose
from ._dense import Dense
from ._dropout import Dropout
from ._elementwise import (
    Elu,
    Exp,
    Gelu,
    Identity,
    LeakyRelu,
    LogSoftmax,
    Relu,
    Selu,
    Sigmoid,
    Softmax,
    Softplus,
    Tanh,
    elementwise,
)
from ._flatten import Flatten
from ._layer import Layer
from ._norm import BatchNorm
from ._pooling import AvgPool, MaxPool, SumPool

glorot = glorot_normal
randn = normal
logsoftmax = log_softmax

__all__ = [
    "AvgPool",
    "BatchNorm",
    "Conv",
    "Conv1DTranspose",
    "ConvTranspose",
    "Dense",
    "Dropout",
    "Elu",
    "Exp",
    "FanInConcat",
    "FanInSum",
    "FanOut",
    "Flatten",
    "Gelu",
    "GeneralConv",
    "GeneralConvTranspose",
    "Identity",
    "Layer",
    "LeakyRelu",
    "LogSoftmax",
    "MaxPool",
    "Relu",
    "Selu",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "SumPool",
    "Tanh",
    "elementwise",
    "elu",
    "gelu",
    "glorot",
    "glorot_normal",
    "leaky_relu",
    "log_softmax",
    "logsoftmax",
    "normal",
    "ones",
    "parallel",
    "randn",
    "relu",
    "selu",
    "serial",
    "shape_dependent",
    "sigmoid",
    "softmax",
    "softplus",
    "standardize",
    "zeros",
]


publish(__name__)
