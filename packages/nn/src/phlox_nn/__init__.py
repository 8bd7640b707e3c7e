"""phlox_nn: neural network layers as pairs of functions, `init` and `apply`, over plain trees of arrays.

    import phlox_nn as nn

    init, apply = nn.serial(nn.Dense(128), nn.selu, nn.Dropout(0.9), nn.Dense(10), nn.log_softmax)
    output_shape, params = init(phlox.random.key(0), (-1, 64))
    scores = apply(params, inputs, rng=phlox.random.key(1))

The protocol is that of ``jax.example_libraries.stax``, and so are the numbers: the same key gives the same parameters.
A layer is any pair ``(init, apply)``:

    init(rng, input_shape) -> (output_shape, params)      -1 stands for a length that is not known yet, the batch's
    apply(params, inputs, *, rng=None, **kwargs) -> outputs

Inside `serial` a function of one array, such as `selu`, is a layer without parameters.
"""

import os as _os

from phlox.extend import hide_frames as _hide_frames
from phlox.nn import (
    elu as elu,
    gelu as gelu,
    leaky_relu as leaky_relu,
    log_softmax as log_softmax,
    relu as relu,
    selu as selu,
    sigmoid as sigmoid,
    silu as silu,
    softmax as softmax,
    softplus as softplus,
    tanh as tanh,
)

from . import initializers as initializers
from ._dense import Dense as Dense
from ._dropout import Dropout as Dropout
from ._flatten import Flatten as Flatten
from ._layer import Layer as Layer
from ._serial import serial as serial

# Errors point at the line of the user who called a layer, not at the layer.
_hide_frames(_os.path.dirname(__file__))
