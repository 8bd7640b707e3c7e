"""Loading and saving folders of weights as Hugging Face writes them: ``config.json`` and ``model.safetensors``."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import phlox_nn as nn
from phlox.errors import ArgumentError, TreeError

from . import _hub
from ._architecture import architecture, build
from ._config import Config

Folder = str | os.PathLike[str]
#: the largest config.json that is read, in bytes
_LONGEST_CONFIG = 10_000_000


def load(name: Folder, *, dtype: Any = None, sharding: Any = None, revision: str | None = None) -> tuple[Any, Any]:
    """A model with its weights, from a folder as Hugging Face writes it, or from its hub.

    The files are memory-mapped and read array by array, so the peak of memory is little more than that of the model.

    Args:
      name: a folder with a ``config.json`` and a ``model.safetensors``, its index, or a ``pytorch_model.bin``; or the
        name of a model on the Hugging Face hub, such as ``"openai-community/gpt2"``, which needs
        ``phlox-models[hub]``.
      dtype: of the parameters, by default that of the file.
      sharding: a sharding or a device for all parameters, or nested dicts of shardings as `phlox_nn.shardings` makes
        them for ``phlox.eval_shape(model.init, key)``. Devices read only their parts.
      revision: the branch, tag or commit on the hub.

    Returns:
      ``(model, params)``. ``model.apply(params, tokens)`` gives the logits of language models and classifiers, and the
      last hidden state of encoders. `model.config` is the `Config`. Batch statistics are among the parameters.

    Raises:
      ArgumentError: there is no such folder or model; ``config.json`` lacks an entry or names an unknown architecture;
        a file is damaged, or an index leads out of its folder.
      TreeError: tensors are missing, unknown or misshapen; one error lists them all.
      DtypeError: the element types are not floating-point, and no `dtype` is given.

    >>> import tempfile
    >>> import phlox
    >>> import phlox_models
    >>> model = phlox_models.build(
    ...     {"model_type": "gpt2", "vocab_size": 100, "n_positions": 32, "n_embd": 16, "n_layer": 2, "n_head": 2}
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     phlox_models.save(folder, model, model.init(phlox.random.key(0)))
    ...     model, params = phlox_models.load(folder, dtype="bfloat16")
    >>> params["tokens"]["weight"].dtype
    dtype(bfloat16)
    """
    folder = _hub.folder(name, revision)
    config = _read_config(folder)
    model = build(config)
    if not _is_tied(model) or not _has_head(model, folder):
        return model, _read(model, folder, dtype, sharding)
    # Some files have a head of their own although their configuration says that it is the table of tokens.
    untied = build(Config({**config, "tie_word_embeddings": False}))
    params = _read(untied, folder, dtype, sharding)
    if bool((params["tokens"]["weight"] == params["unembed"]["weight"].T).all()):
        del params["unembed"]
        return model, params
    return untied, params


def _read(model: Any, folder: Path, dtype: Any, sharding: Any) -> Any:
    """The parameters and batch statistics of a model, from a folder."""
    rename = architecture(model.config).rename(model)
    try:
        params, state = nn.load_safetensors(model, folder, rename=rename, dtype=dtype, sharding=sharding)
    except TreeError as error:
        report = getattr(error, "report", None)
        if report is None:
            raise
        raise TreeError(
            f"the weights in {str(folder)!r} do not fit {type(model).__name__}, as its config.json describes it:\n  "
            + str(report).replace("\n", "\n  "),
            instead="the config.json and the weights of one model",
            report=report,
        ) from None
    return nn.merge(params, state)


def _is_tied(model: Any) -> bool:
    """Whether the head of a language model is its table of tokens."""
    return bool(_head_rules(model)) and "unembed" not in model.parts()


def _head_rules(model: Any) -> list[str]:
    """The name of the weights of the head of a language model in files; empty for other models."""
    if model.config.class_head not in (None, "ForCausalLM", "ForConditionalGeneration"):
        return []
    weights = architecture(model.config).weights
    return [rule[0].replace("*", "weight") for rule in weights if rule[1] == "unembed.*"]


def _has_head(model: Any, folder: Path) -> bool:
    report = nn.compare_weights(model, folder)
    names = {name for group in (report.matched, report.unused, report.misshapen) for name, *_ in group}
    return any(name in names for name in _head_rules(model))


def save(name: Folder, model: Any, params: Any) -> None:
    """Writes a folder that `load` and Hugging Face's libraries read: ``config.json`` and ``model.safetensors``.

    Args:
      name: the folder; it is made if needed. Files of these names in it are replaced.
      model: a model with a field `config`, as `load` and `build` return it.
      params: its parameters. Those of several devices are gathered on the host.

    Raises:
      ArgumentError: the model has no `config`, or the safetensors library is missing.
      TreeError, ShapeError: these are not parameters of the model.
    """
    config = getattr(model, "config", None)
    if not isinstance(config, Config):
        raise ArgumentError(
            f"{type(model).__name__} is no model of phlox_models: it has no config",
            instead="a model from phlox_models.load or phlox_models.build",
        )
    folder = Path(name)
    folder.mkdir(parents=True, exist_ok=True)
    # Weights first: a folder with a config.json is complete.
    rename = architecture(config).rename(model)
    file = folder / ("diffusion_pytorch_model.safetensors" if "_class_name" in config else "model.safetensors")
    nn.save_safetensors(model, params, file.with_suffix(".partial"), rename=rename)
    os.replace(file.with_suffix(".partial"), file)
    (folder / "config.json").write_text(json.dumps(dict(config), indent=2, sort_keys=True) + "\n")


def _read_config(folder: Path) -> Config:
    """The configuration in a folder. Raises `ArgumentError` if there is none."""
    file = folder / "config.json"
    if not file.is_file():
        raise ArgumentError(
            f"the folder {str(folder)!r} has no config.json",
            instead="a folder that model.save_pretrained(folder) or phlox_models.save wrote",
        )
    if file.stat().st_size > _LONGEST_CONFIG:
        raise ArgumentError(f"{str(file)!r} has {file.stat().st_size} bytes, which is no configuration")
    try:
        entries = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ArgumentError(
            f"{str(file)!r} is not JSON: {error}", instead="the config.json of the model's authors"
        ) from None
    if not isinstance(entries, Mapping):
        raise ArgumentError(f"{str(file)!r} has no JSON object, but a {type(entries).__name__}")
    if "model_type" not in entries and "_class_name" not in entries:
        raise ArgumentError(
            f"{str(file)!r} does not say which architecture it is for",
            instead='"model_type": "gpt2", or another of phlox_models.model_types()',
        )
    return Config(entries)
