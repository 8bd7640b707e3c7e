"""`Config`: what a ``config.json`` says, with checks of what an architecture reads from it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import phlox_nn as nn
from phlox.errors import ArgumentError


def _exact_gelu(x: Any) -> Any:
    return nn.gelu(x, approximate=False)


def _tanh_gelu(x: Any) -> Any:
    return nn.gelu(x, approximate=True)


def _quick_gelu(x: Any) -> Any:
    return x * nn.sigmoid(1.702 * x)


#: activations by Hugging Face's names
ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "gelu": _exact_gelu,
    "gelu_fast": _tanh_gelu,
    "gelu_new": _tanh_gelu,
    "gelu_pytorch_tanh": _tanh_gelu,
    "mish": nn.mish,
    "quick_gelu": _quick_gelu,
    "relu": nn.relu,
    "sigmoid": nn.sigmoid,
    "silu": nn.silu,
    "swish": nn.silu,
    "tanh": nn.tanh,
}
#: the ends of Hugging Face's class names, which tell the head of a model
_HEAD = re.compile(r"[A-Za-z0-9]+?(For[A-Z]\w*|LMHeadModel|EncoderModel|DoubleHeadsModel|WithProjection|Model)")
_REQUIRED = object()


class Config(Mapping[str, Any]):
    """The configuration of a model: an immutable mapping with the contents of its ``config.json``.

    Its methods read an entry and check it; a missing or wrong one is an `ArgumentError` that names it.

    Args:
      entries: the contents: names, numbers, texts, lists and dicts, as JSON has them.

    >>> config = Config({"model_type": "gpt2", "n_embd": 64, "activation_function": "gelu_new"})
    >>> config.model_type, config.integer("n_embd"), config.integer("n_inner", 256)
    ('gpt2', 64, 256)
    """

    def __init__(self, entries: Mapping[str, Any]) -> None:
        # Text is immutable, compares fast and hashes: models are keys of caches of compiled functions.
        self._text = json.dumps(dict(entries), sort_keys=True)
        self._entries: dict[str, Any] = json.loads(self._text)

    def __getitem__(self, name: str) -> Any:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __hash__(self) -> int:
        return hash(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self._text == other._text

    def __repr__(self) -> str:
        return f"Config({self.get(self._type_entry)!r})"

    @property
    def model_type(self) -> str:
        """Hugging Face's name of the architecture: `model_type`, or in files of diffusers `_class_name`."""
        return self.text(self._type_entry)

    @property
    def _type_entry(self) -> str:
        return "_class_name" if "_class_name" in self and "model_type" not in self else "model_type"

    @property
    def labels(self) -> int:
        """The number of classes, for classifiers; 2 if nothing is said, as in Hugging Face's files."""
        if isinstance(self.get("id2label"), Mapping):
            return len(self["id2label"])
        return self.integer("num_labels", 2)

    def head(self, *known: str) -> str:
        """The head of the model, as the end of the class name in `architectures`: ``"ForCausalLM"``, ``"Model"``.

        Args:
          known: the heads that the architecture has; the first is that of files that name none.
        """
        head = self.class_head
        if head is None:
            return known[0]
        if head not in known:
            raise ArgumentError(
                f'config.json: phlox_models has no {self["architectures"][0]}, which "architectures" names',
                instead=f"a model of type {self.model_type!r} whose class ends with {' or '.join(known)}",
                architecture=self["architectures"][0],
            )
        return head

    @property
    def class_head(self) -> str | None:
        """The end of the class name in `architectures`; None if there is no name, empty if it is not understood."""
        names = self.get("architectures")
        if not isinstance(names, list) or not names:
            return None
        match = _HEAD.fullmatch(str(names[0]))
        return {"LMHeadModel": "ForCausalLM"}.get(match[1], match[1]) if match else ""

    def integer(self, name: str, default: Any = _REQUIRED) -> int:
        """A positive integer."""
        return self._checked(name, default, "a positive integer", lambda x: type(x) is int and x > 0)

    def number(self, name: str, default: Any = _REQUIRED) -> float:
        """A number."""
        return self._checked(name, default, "a number", lambda x: type(x) in (int, float))

    def flag(self, name: str, default: Any = _REQUIRED) -> bool:
        """True or False."""
        return self._checked(name, default, "true or false", lambda x: type(x) is bool)

    def text(self, name: str, default: Any = _REQUIRED) -> str:
        """A text."""
        return self._checked(name, default, "a text", lambda x: type(x) is str)

    def integers(self, name: str, default: Any = _REQUIRED) -> tuple[int, ...]:
        """Positive integers, from a list or from one integer."""

        def are_integers(x: Any) -> bool:
            return type(x) in (list, tuple) and all(type(n) is int and n > 0 for n in x)

        value = self._checked(
            name, default, "a list of positive integers", lambda x: are_integers([x] if type(x) is int else x)
        )
        return (value,) if type(value) is int else tuple(value)

    def activation(self, name: str, default: Any = _REQUIRED) -> Callable[[Any], Any]:
        """An activation function."""
        kinds = "one of " + ", ".join(ACTIVATIONS)
        return ACTIVATIONS[self._checked(name, default, kinds, lambda x: type(x) is str and x in ACTIVATIONS)]

    def part(self, name: str) -> Config:
        """A configuration inside of this one, such as that of the text model of CLIP."""
        return Config(self._checked(name, _REQUIRED, "an object", lambda x: isinstance(x, Mapping)))

    def check_fixed(self, values: Mapping[str, Any]) -> None:
        """Raises `ArgumentError` for an entry with another value than this one, the only one that is implemented."""
        for name, value in values.items():
            if name in self and self[name] != value:
                raise ArgumentError(
                    f"config.json: {name!r} is {self[name]!r:.60}, which phlox_models lacks for a {self.model_type}",
                    instead=f"a model with {name}={value!r}",
                    name=name,
                )

    def _checked(self, name: str, default: Any, kind: str, is_valid: Callable[[Any], bool]) -> Any:
        value = self.get(name)
        if value is None and default is not _REQUIRED:
            return default
        if value is None or not is_valid(value):
            problem = "is missing" if value is None else f"is {value!r:.60}"
            raise ArgumentError(
                f"config.json: {name!r} {problem}, but a model of type {self.get(self._type_entry)!r} needs {kind}",
                instead=f'"{name}": {kind}, as in the config.json of the model\'s authors',
                name=name,
            )
        return value
