"""phlox_nn: layers of neural networks. A layer is a configuration; bound to parameters it is a function.

    import phlox_nn as nn

    model = nn.Sequential(nn.Linear(64, 128), nn.relu, nn.Dropout(0.1), nn.Linear(128, 10))
    params = model.init(phlox.random.key(0))  # nested dicts of arrays
    scores = model.apply(params, images)  # a pure function, for jit, grad, vmap, scan and pmap

Layers with state or random numbers get what they need as arguments: ``scores, state = model.apply(params, images,
state=state, key=key, train=True)``. `Layer` documents how to write a layer.
"""

import os as _os

from phlox.extend import hide_frames as _hide_frames, publish as _publish
from phlox.nn import one_hot as one_hot

from . import initializers as initializers
from ._activations import (
    celu as celu,
    elu as elu,
    gelu as gelu,
    glu as glu,
    hard_sigmoid as hard_sigmoid,
    hard_swish as hard_swish,
    hard_tanh as hard_tanh,
    leaky_relu as leaky_relu,
    log_sigmoid as log_sigmoid,
    log_softmax as log_softmax,
    mish as mish,
    relu as relu,
    relu6 as relu6,
    selu as selu,
    sigmoid as sigmoid,
    silu as silu,
    soft_sign as soft_sign,
    softmax as softmax,
    softplus as softplus,
    squareplus as squareplus,
    swish as swish,
    tanh as tanh,
)
from ._adapters import LoRA as LoRA, SpectralNorm as SpectralNorm, WeightNorm as WeightNorm
from ._attention import MultiHeadAttention as MultiHeadAttention, rotary as rotary
from ._combine import Parallel as Parallel, Residual as Residual, Sequential as Sequential
from ._conv import Conv as Conv, ConvTranspose as ConvTranspose
from ._dropout import Dropout as Dropout, DropPath as DropPath
from ._experts import MoE as MoE, balance_loss as balance_loss
from ._gated import GLU as GLU
from ._layer import Layer as Layer
from ._linear import MLP as MLP, Embedding as Embedding, Linear as Linear
from ._norm import (
    BatchNorm as BatchNorm,
    GroupNorm as GroupNorm,
    InstanceNorm as InstanceNorm,
    LayerNorm as LayerNorm,
    RMSNorm as RMSNorm,
)
from ._paths import BATCH as BATCH, labels as labels, mask as mask, merge as merge, partition as partition
from ._pool import (
    AvgPool as AvgPool,
    MaxPool as MaxPool,
    avg_pool as avg_pool,
    flatten as flatten,
    global_avg_pool as global_avg_pool,
    global_max_pool as global_max_pool,
    max_pool as max_pool,
)
from ._positions import ALiBi as ALiBi, RelativePositionBias as RelativePositionBias
from ._quantized import Quantized as Quantized
from ._recurrent import (
    GRU as GRU,
    LSTM as LSTM,
    RNN as RNN,
    GRUCell as GRUCell,
    LSTMCell as LSTMCell,
    RNNCell as RNNCell,
)
from ._remat import Remat as Remat
from ._safetensors import load_safetensors as load_safetensors, save_safetensors as save_safetensors
from ._shardings import shardings as shardings
from ._simple import Identity as Identity, PReLU as PReLU, Upsample as Upsample
from ._sizes import Sizes as Sizes, sizes as sizes
from ._stack import Stack as Stack
from ._summary import Summary as Summary, summary as summary
from ._surgery import replace as replace
from ._transformer import (
    TransformerDecoderBlock as TransformerDecoderBlock,
    TransformerEncoderBlock as TransformerEncoderBlock,
)
from ._weights import (
    WeightReport as WeightReport,
    compare_weights as compare_weights,
    load_torch as load_torch,
    to_torch as to_torch,
)

# Errors point at the user's line that calls a layer, not into this package.
_hide_frames(_os.path.dirname(__file__))
__version__ = "0.1.0"
_publish(__name__)
