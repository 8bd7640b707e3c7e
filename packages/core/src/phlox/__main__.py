"""``python -m phlox``: the commands of phlox, of which each is a package of its own."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    if sys.argv[1:2] == ["debug"]:  # all further arguments are those of the program that it runs
        from phlox._debugger.command import main

        sys.exit(main(sys.argv[2:]))
    from phlox._doctor.command import main

    sys.exit(main(sys.argv[1:]))
