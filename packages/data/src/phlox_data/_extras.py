"""Optional libraries, which are imported only here, at their first use, and by name.

So `import phlox_data` is fast and works without them, and build tools that read import statements do not make them
requirements of every program.
"""

from __future__ import annotations

import importlib
from typing import Any

from phlox.extend import warn

from .errors import MissingExtraError

_COMMANDS = {
    "torch": "pip install torch",
    "tensorflow": "pip install tensorflow-cpu",
    "tensorflow_datasets": "pip install tensorflow-datasets array_record",
    "grain": "pip install grain",
    "datasets": "pip install datasets",
}


def require(library: str) -> Any:
    """The optional library of this name: ``"torch"``, ``"tensorflow"``, ``"tensorflow_datasets"``, ``"grain"``, ...

    Raises `MissingExtraError`, whose message has the command that installs it. From TensorFlow it hides the GPUs, of
    which it would reserve all memory although it only reads data; with a `RuntimeWarning` if it has them already.

    >>> require("no_such_library")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    MissingExtraError: ...
    """
    module: Any = None
    try:
        module = importlib.import_module(library)
    except ModuleNotFoundError as error:
        if error.name != library:  # the library is installed but broken: keep its own error
            raise
    if getattr(module, "__file__", None) is None:  # a folder of that name, which Python imports as namespace package
        command = _COMMANDS.get(library, f"pip install {library}")
        raise MissingExtraError(
            f"{library} is not installed", instead=command, name=library, library=library, command=command
        )
    if library == "tensorflow":
        _hide_gpus(module)
    return module


def _hide_gpus(tensorflow: Any) -> None:
    if not tensorflow.config.get_visible_devices("GPU"):
        return
    try:
        tensorflow.config.set_visible_devices([], "GPU")
    except RuntimeError:  # it has initialized its devices
        warn(
            "TensorFlow has GPUs in use, and by default reserves all their memory, which phlox then lacks. Instead: "
            'tf.config.set_visible_devices([], "GPU"), just after importing it',
            RuntimeWarning,
        )
