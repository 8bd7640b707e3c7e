"""``python -m phlox.launch``; see `_command.py`."""

import sys

from phlox.launch._command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
