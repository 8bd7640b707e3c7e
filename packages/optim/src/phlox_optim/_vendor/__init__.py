"""A private copy of the installed optax that runs on phlox.

    phlox_optim._vendor.optax   optax's own files, with other imports: the module is loaded a second time, in here
    phlox_optim._vendor.jax     what those files take for jax: phlox, name by name

Nothing is put into the place of ``jax`` or ``optax``: programs may import both beside phlox. `rewrite.py` changes the
imports, `facade.py` presents phlox, `finder.py` answers Python's import system. The finder is installed as soon as this
package is imported, and Python imports it before anything below it, so a pickled optimizer state finds its class in a
fresh process.
"""

import sys

from .finder import Finder
from .rewrite import ROOTS

COPY = ROOTS["optax"]  # the name to import it by

sys.meta_path.append(Finder())
