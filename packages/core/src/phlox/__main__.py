"""``python -m phlox``: the commands of phlox, of which each is a package of its own."""

from __future__ import annotations

import sys

from phlox._doctor.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
