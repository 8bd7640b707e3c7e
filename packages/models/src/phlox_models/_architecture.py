"""The registry of architectures, by the `model_type` of their ``config.json``.

The module of an architecture is imported when a configuration names it. It has a layer that is made from a `Config`,
a table of rules for the names of its weights, and ends with a call of `register`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import phlox
import phlox_nn as nn
from phlox.errors import ArgumentError

from ._config import Config

if TYPE_CHECKING:  # `architecture` imports them by name; packagers look for import statements
    from . import (  # noqa: F401
        autoencoder_kl,
        bert,
        clip,
        convnext,
        gpt2,
        gptj,
        llama,
        mlp_mixer,
        perceiver,
        resnet,
        t5,
        unet,
        vae,
        vit,
        whisper,
    )

#: Rules from names in the file to names in the model, as the argument `rename` of `phlox_nn.load_torch`:
#: (pattern in the file, pattern in the model), or several patterns for a tensor that is their concatenation, or None
#: for what is not needed; a third item "transposed", or two functions, states another layout in the file.
Rules = Sequence[tuple[Any, ...]]


class Architecture(NamedTuple):
    """A kind of model.

    Attributes:
      model_type: Hugging Face's name of it.
      build: makes the layer from a `Config`. The layer has the configuration as its field `config`.
      weights: rules for the names of its weights, for loading and saving.
      prefix: the beginning of names in files of models with a head, which files of models without a head lack:
        ``"transformer."``. Rules have it; both forms are read.
    """

    model_type: str
    build: Callable[[Config], nn.Layer]
    weights: Rules
    prefix: str = ""

    def rename(self, model: Any) -> Rules:
        """The rules for the files of a model, in the form that `phlox_nn.load_torch` takes."""
        # Files have more than some models need, such as the head of a language model whose embeddings are tied.
        parts = _names(model)

        def is_needed(ours: Any) -> bool:
            return not isinstance(ours, str) or "*" in ours.split(".")[0] or ours.split(".")[0] in parts

        rules = [rule if is_needed(rule[1]) else (rule[0], None) for rule in self.weights]
        if not self.prefix:
            return rules
        bare = [(rule[0].removeprefix(self.prefix), *rule[1:]) for rule in rules if rule[0].startswith(self.prefix)]
        # The first rules that fit are used for writing.
        return bare + rules if model.config.class_head in ("Model", "EncoderModel") else rules + bare


#: the module of each architecture, by `model_type`
_MODULES = {
    "AutoencoderKL": "autoencoder_kl",
    "UNet2DModel": "unet",
    "bert": "bert",
    "clip": "clip",
    "clip_text_model": "clip",
    "clip_vision_model": "clip",
    "convnext": "convnext",
    "convnextv2": "convnext",
    "deit": "vit",
    "gemma": "llama",
    "gpt2": "gpt2",
    "gptj": "gptj",
    "llama": "llama",
    "mistral": "llama",
    "mlp-mixer": "mlp_mixer",
    "mt5": "t5",
    "perceiver": "perceiver",
    "phi3": "llama",
    "qwen2": "llama",
    "qwen3": "llama",
    "resnet": "resnet",
    "t5": "t5",
    "unet": "unet",
    "vae": "vae",
    "vit": "vit",
    "whisper": "whisper",
}
_ARCHITECTURES: dict[str, Architecture] = {}


def register(model_type: str, build: Callable[[Config], nn.Layer], weights: Rules, *, prefix: str = "") -> None:
    """Adds an architecture, under the `model_type` of its ``config.json``; `phlox_models.load` then reads its files.

    Args:
      model_type: Hugging Face's name, or one of your own.
      build: makes the layer from a `Config`. The layer must have the configuration as a field `config`.
      weights: rules (pattern in the file, pattern in the model) for the names of weights, as the argument `rename` of
        `phlox_nn.load_torch`. They are applied backwards by `phlox_models.save`.
      prefix: the beginning of names that files of models without a head lack.

    >>> import phlox_models
    >>> import phlox_nn as nn
    >>> class Probe(nn.Layer):
    ...     config: phlox_models.Config
    ...
    ...     def parts(self):
    ...         return {"linear": nn.Linear(self.config.integer("size"), self.config.labels)}
    ...
    ...     def __call__(self, x):
    ...         return self.linear(x)
    >>> phlox_models.register("probe", Probe, [("classifier.*", "linear.*")])
    >>> phlox_models.build({"model_type": "probe", "size": 8})
    Probe(Config('probe'))
    """
    _ARCHITECTURES[model_type] = Architecture(model_type, build, weights, prefix)


def architecture(config: Config) -> Architecture:
    """The architecture of a configuration. Raises `ArgumentError` if there is none of its `model_type`."""
    name = config.model_type
    if name not in _ARCHITECTURES and name in _MODULES:
        importlib.import_module(f"{__package__}.{_MODULES[name]}")
    if name not in _ARCHITECTURES:
        raise ArgumentError(
            f'config.json: there is no architecture for "model_type": {name!r}; there are {", ".join(model_types())}',
            instead="phlox_models.register(model_type, build, weights) adds one",
            model_type=name,
        )
    return _ARCHITECTURES[name]


def build(config: Any) -> nn.Layer:
    """The model of a configuration, without weights: a layer, whose `init` makes random ones.

    Args:
      config: a `Config`, or a dict with the contents of a ``config.json``.

    Raises:
      ArgumentError: there is no architecture of this `model_type`, or an entry is missing or wrong.

    >>> import phlox
    >>> import phlox_models
    >>> model = phlox_models.build(
    ...     {"model_type": "gpt2", "vocab_size": 100, "n_positions": 32, "n_embd": 16, "n_layer": 2, "n_head": 2}
    ... )
    >>> params = model.init(phlox.random.key(0))
    >>> model.apply(params, phlox.numpy.zeros((1, 5), int)).shape
    (1, 5, 100)
    """
    config = config if isinstance(config, Config) else Config(config)
    model = architecture(config).build(config)
    phlox.eval_shape(model.init, phlox.random.key(0))  # reads all of the configuration, so that errors come now
    return model


def model_types() -> list[str]:
    """The names of all architectures, sorted.

    >>> "gpt2" in model_types()
    True
    """
    return sorted({*_MODULES, *_ARCHITECTURES})


def _names(model: nn.Layer) -> set[str]:
    """The names of the parts and arrays of a model that stand at its top."""
    shapes = phlox.eval_shape(model.init, phlox.random.key(0))
    return {*shapes, *model.init_state()}
