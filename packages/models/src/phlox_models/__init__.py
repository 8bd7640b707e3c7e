"""phlox_models: architectures of the field, with weights that others have published.

    import phlox_models

    model, params = phlox_models.load("folder")  # config.json and model.safetensors, as Hugging Face writes them
    logits = model.apply(params, tokens)
    phlox_models.save("other", model, params)

A model is a layer of phlox_nn, made from a `Config`. `register` adds an architecture.
"""

import os as _os

from phlox.extend import hide_frames as _hide_frames, publish as _publish

from ._architecture import (
    Architecture as Architecture,
    build as build,
    model_types as model_types,
    register as register,
)
from ._config import Config as Config
from ._generate import generate as generate
from ._language import init_cache as init_cache
from ._tokens import tokenizer as tokenizer
from ._weights import load as load, save as save

# Errors point at the user's line that calls a model, not into this package.
_hide_frames(_os.path.dirname(__file__))
__version__ = "0.1.0"
_publish(__name__)
