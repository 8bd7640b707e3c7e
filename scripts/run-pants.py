"""Second half of ./pants: hands pip's settings on to the Pants that ./pants installed, and becomes that Pants.

Pants does not read pip's configuration. Handing it on makes one set-up serve both, and keeps every address and path
out of pants.toml. A PANTS_* variable that is already set wins.
"""

import ast
import hashlib
import os
import platform
import subprocess
import sys
from pathlib import Path

home, pex_version, *arguments = sys.argv[1:]

listing = subprocess.run([sys.executable, "-m", "pip", "config", "list"], stdout=subprocess.PIPE, text=True, check=True)
pip_config = dict(line.split("=", 1) for line in listing.stdout.splitlines())


def pip_setting(name):
    """The words of one pip setting, from the strongest place that sets it."""
    for scope in (":env:", "install", "global"):
        text = pip_config.get(f"{scope}.{name}")
        if text is not None:
            return ast.literal_eval(text).split()
    return []


def pex_file():
    """Where the PEX made by ./pants lies, in the words Pants uses for a tool it would otherwise download."""
    content = Path(home, "pex").read_bytes()
    system = {"Linux": "linux", "Darwin": "macos"}[platform.system()]
    machine = {"aarch64": "arm64"}.get(platform.machine(), platform.machine())
    digest = hashlib.sha256(content).hexdigest()
    return {
        "PANTS_PEX_CLI_VERSION": f"v{pex_version}",
        "PANTS_PEX_CLI_URL_TEMPLATE": Path(home, "pex").as_uri(),
        "PANTS_PEX_CLI_KNOWN_VERSIONS": str([f"v{pex_version}|{system}_{machine}|{digest}|{len(content)}"]),
    }


def package_index():
    settings = {}
    if pip_setting("find-links"):
        settings["PANTS_PYTHON_REPOS_FIND_LINKS"] = f"+{pip_setting('find-links')}"
    if pip_setting("no-index") and pip_setting("no-index")[0].lower() in ("1", "true", "yes", "on"):
        settings["PANTS_PYTHON_REPOS_INDEXES"] = "[]"
    elif pip_setting("index-url"):
        settings["PANTS_PYTHON_REPOS_INDEXES"] = str(pip_setting("index-url") + pip_setting("extra-index-url"))
    elif pip_setting("extra-index-url"):
        settings["PANTS_PYTHON_REPOS_INDEXES"] = f"+{pip_setting('extra-index-url')}"
    if pip_setting("cert"):
        settings["PANTS_CA_CERTS_PATH"] = pip_setting("cert")[0]
    return settings


quiet = {"NO_SCIE_WARNING": "1"}  # Pants would advise its own launcher at each start
for name, value in {**pex_file(), **package_index(), **quiet}.items():
    os.environ.setdefault(name, value)
pants = str(Path(home, "venv", "bin", "pants"))
os.execv(pants, [pants, *arguments])
