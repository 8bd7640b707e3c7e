"""A private copy of the installed optax that runs on phlox.

    phlox_optim._vendor.optax   optax's own files, with other imports: the module is loaded a second time, in here
    phlox_optim._vendor.jax     the modules that these files import as jax: views of phlox

``jax`` and ``optax`` themselves are not replaced: programs may import both beside phlox. `rewrite.py` changes the
imports, `facade.py` presents phlox as jax, `finder.py` is the import hook. The finder is installed when this package is
imported, which Python does before it imports anything below, so that unpickling an optimizer state in a new process
finds its class.
"""

import sys

from .finder import Finder
from .rewrite import ROOTS

COPY = ROOTS["optax"]  # the name to import it by

sys.meta_path.append(Finder())
