"""The threads of this package that are alive."""

import threading


def ours():
    return [thread for thread in threading.enumerate() if thread.name.startswith("phlox-data")]
