"""Flags of the configuration on the command line, by absl: ``program.py --jax_enable_x64``. It needs absl-py."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

from .._base.config import FLAGS

#: flags whose values are objects, which a command line cannot give
_OBJECTS = ("default_device", "mesh", "user_contexts")


def define(update: Callable[[str, Any], None]) -> None:
    """Defines the flags; those that are given are handed to `update` when absl has parsed the command line."""
    from absl import app, flags

    for name, flag in FLAGS.items():
        if name in _OBJECTS or f"jax_{name}" in flags.FLAGS:
            continue
        define = flags.DEFINE_bool if isinstance(flag.default, bool) else flags.DEFINE_string
        define(f"jax_{name}", None, flag.doc)
    app.call_after_init(lambda: follow(update))


def follow(update: Callable[[str, Any], None]) -> None:
    """Hands the flags that are given to `update`."""
    from absl import flags

    for name in FLAGS:
        if f"jax_{name}" in flags.FLAGS and flags.FLAGS[f"jax_{name}"].present:
            update(name, flags.FLAGS[f"jax_{name}"].value)


def parse(update: Callable[[str, Any], None]) -> None:
    """Defines the flags, and follows those among the arguments of the program before ``--`` that start with --jax."""
    from absl import flags

    define(update)
    arguments = itertools.takewhile(lambda argument: argument != "--", sys.argv)
    flags.FLAGS(["", *(a for a in arguments if a.startswith("--jax"))], known_only=True)
    follow(update)
