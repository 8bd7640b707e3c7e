"""Libraries of JAX: the first result after the imports, with nothing on disk and with the cache, and a step.

``./bench libraries`` measures them with Python 3.12 and the versions of 3rdparty/libraries.lock.
"""

from __future__ import annotations

from ..case import KEPT_ON_DISK, started
from ..libraries import PROGRAMS

_START = """
import sys, time
if "LIBRARY" == "phlox":
    from phlox import as_jax
    as_jax.install()
import jax, jax.numpy
from benchmarks.libraries import PROGRAMS
start = PROGRAMS[{name!r}][0]()
t = time.perf_counter()
step = start()
"""
_FIRST = "print(time.perf_counter() - t)"
# The least of all calls in a second: a mean would measure the other users of the machine.
_STEP = """
seconds = []
end = time.perf_counter() + 1
while len(seconds) < 5 or time.perf_counter() < end:
    t = time.perf_counter()
    step()
    seconds.append(time.perf_counter() - t)
print(min(seconds))
"""
_KERAS = (("KERAS_BACKEND", "jax"),)

for _name, (_, _needs) in PROGRAMS.items():
    _program = _START.format(name=_name)
    started(f"libraries/{_name}, first", _program + _FIRST, needs=_needs, budget=0.5, quick=False, environment=_KERAS)
    started(
        f"libraries/{_name}, first, warm disk cache",
        _program + _FIRST,
        needs=_needs,
        budget=0.2,
        quick=False,
        environment=(*KEPT_ON_DISK, *_KERAS),
    )
    started(f"libraries/{_name}, step", _program + _STEP, needs=_needs, budget=1.0, quick=False, environment=_KERAS)
