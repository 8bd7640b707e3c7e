"""The folders of sources of core and compat, for the processes that tests start."""

import os
from pathlib import Path

PACKAGES = Path(__file__).parents[2]
CORE, COMPAT = (str(PACKAGES / name / "src") for name in ("core", "compat"))
BOTH = os.pathsep.join((CORE, COMPAT))
