"""``python -m phlox_examples``."""

import sys

from .cli import main

sys.exit(main())
