"""Optional libraries. They are imported here and nowhere else, when somebody asks, and by name.

Imports stand in no other file so that `import phlox_data` costs nothing and works without them, and so that build tools
which read import statements do not take the extras for needs of every program.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from .errors import MissingExtraError

_COMMANDS = {
    "torch": "pip install torch==2.13.0",  # of other versions pip may find builds that bring gigabytes of CUDA
    "tensorflow": "pip install tensorflow-cpu",
    "tensorflow_datasets": "pip install tensorflow-datasets array_record",
}


def require(library: str) -> Any:
    """The optional library of this name: ``"torch"``, ``"tensorflow"`` or ``"tensorflow_datasets"``.

    Raises `MissingExtraError`, whose text holds the command that installs it. When this is what first imports
    TensorFlow, the GPUs are hidden from it: it would reserve all of their memory, and here it only reads data.

    >>> require("no_such_library")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    MissingExtraError: ...
    """
    imported_before = library in sys.modules
    module: Any = None
    try:
        module = importlib.import_module(library)
    except ModuleNotFoundError as error:
        if error.name != library:  # the library is there and broken, which its own words explain best
            raise
    if getattr(module, "__file__", None) is None:  # also a folder of that name on the path, which Python takes for one
        command = _COMMANDS.get(library, f"pip install {library}")
        raise MissingExtraError(
            f"{library} is not installed", instead=command, name=library, library=library, command=command
        )
    if library == "tensorflow" and not imported_before:
        module.config.set_visible_devices([], "GPU")
    return module
