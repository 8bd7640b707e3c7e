"""``python -m phlox.as_jax``; see `_command.py`."""

import sys

from phlox_compat.as_jax._command import main

if __name__ == "__main__":
    main(sys.argv[1:])
