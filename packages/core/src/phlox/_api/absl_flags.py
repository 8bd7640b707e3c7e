"""Flags of the configuration on the command line, by absl: ``program.py --jax_enable_x64``. It needs absl-py."""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable
from typing import Any

from .._base.config import FLAGS, describe
from .._base.inert_flags import DEFAULTS

#: flags whose values are objects, which a command line cannot give
_OBJECTS = ("default_device", "device_context", "entered_mesh", "inert", "mesh", "user_contexts")


def define(update: Callable[[str, Any], None]) -> None:
    """Defines the flags; those that are given are handed to `update` when absl has parsed the command line."""
    from absl import app, flags

    for name in _names():
        if name in flags.FLAGS:
            continue
        default, about = describe(name.removeprefix("jax_"))
        define = flags.DEFINE_bool if isinstance(default, bool) else flags.DEFINE_string
        # None as the default tells flags that were given from others.
        define(name, None, about)
    app.call_after_init(lambda: follow(update))


def follow(update: Callable[[str, Any], None]) -> None:
    """Hands the flags that are given to `update`."""
    from absl import flags

    for name in _names():
        if name in flags.FLAGS and flags.FLAGS[name].present:
            update(name, flags.FLAGS[name].value)


def _names() -> list[str]:
    """JAX's names of all options that a command line can give."""
    ours = [f"jax_{name}" for name in FLAGS if name not in _OBJECTS]
    return [*ours, *(name for name in DEFAULTS if name.startswith("jax_"))]


@functools.cache  # the command line is followed once, so that later updates stay
def parse(update: Callable[[str, Any], None]) -> None:
    """Defines the flags, and follows those among the arguments of the program before ``--`` that start with --jax."""
    from absl import flags

    define(update)
    arguments = itertools.takewhile(lambda argument: argument != "--", sys.argv)
    # Other flags are the program's own, and may be defined after this.
    flags.FLAGS(["", *(a for a in arguments if a.startswith("--jax"))], known_only=True)
    follow(update)
