"""Optional libraries, which are imported only here, at their first use, and by name.

So `import phlox_data` is fast and works without them, and build tools that read import statements do not make them
requirements of every program.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from .errors import MissingExtraError

_COMMANDS = {
    "torch": "pip install torch==2.13.0",  # for other versions pip may choose builds with gigabytes of CUDA libraries
    "tensorflow": "pip install tensorflow-cpu",
    "tensorflow_datasets": "pip install tensorflow-datasets array_record",
}


def require(library: str) -> Any:
    """The optional library of this name: ``"torch"``, ``"tensorflow"`` or ``"tensorflow_datasets"``.

    Raises `MissingExtraError`, whose message has the command that installs it. If this call imports TensorFlow for the
    first time, it hides the GPUs from TensorFlow, which would reserve all their memory although it only reads data.

    >>> require("no_such_library")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    MissingExtraError: ...
    """
    imported_before = library in sys.modules
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
    if library == "tensorflow" and not imported_before:
        module.config.set_visible_devices([], "GPU")
    return module
