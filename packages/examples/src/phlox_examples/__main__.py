"""``python -m phlox_examples``."""

import sys

from .cli import main

if __name__ == "__main__":  # documentation is read from the imported module
    sys.exit(main())
