"""phlox_compat: phlox in the place of jax, for programs and libraries that are written for JAX.

- `phlox.as_jax` runs a program whose ``import jax`` imports phlox; `phlox.adopt` makes copies of installed libraries
  that run on phlox beside the real jax.
- ``phlox_compat.jax_internals`` has the names that libraries take from the inside of JAX.
- ``phlox.api_util``, ``phlox.interpreters``, ``phlox.example_libraries`` and some modules of ``phlox.experimental`` are
  modules of JAX that only ported programs use.

phlox passes on to the modules of this package under its own names: ``phlox.interpreters`` is
``phlox_compat.interpreters``. docs/libraries.md lists the libraries that run.
"""

import os as _os

from phlox.extend import hide_frames as _hide_frames, on_demand as _on_demand, publish as _publish

with _on_demand(__name__):
    from . import adopted, api_util, as_jax, example_libraries, experimental, interpreters, jax_internals

__version__ = "0.1.0"
__all__ = ["adopted", "api_util", "as_jax", "example_libraries", "experimental", "interpreters", "jax_internals"]

# Errors point at the line of the program, not into this package.
_hide_frames(_os.path.dirname(__file__))

_publish(__name__)
