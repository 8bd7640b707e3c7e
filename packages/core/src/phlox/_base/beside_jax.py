"""Errors about arrays of the real jax that reach phlox, and arrays of phlox that reach the real jax.

Both may live in one process: a library of the program imports jax. Their arrays and tracers do not mix.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from . import errors, source
from .name_errors import ForeignArrayError

#: the module of jax that converts whatever NumPy converts, arrays of phlox among it
_CONVERTING = "jax._src.numpy.array_constructors"


def is_of_jax(x: Any) -> bool:
    """Whether `x` is an array, a tracer or a key of the real jax."""
    # The second condition: under `as_jax` the classes of phlox's own arrays name modules of jax.
    # jax may not be imported at all, so its classes are recognized by their module.
    aval = getattr(x, "aval", None) if type(x).__module__.startswith(("jax.", "jaxlib.")) else None
    return aval is not None and not type(aval).__module__.startswith("phlox.")


def is_tracer_of_jax(x: Any) -> bool:
    return is_of_jax(x) and any(kind.__name__ == "Tracer" for kind in type(x).__mro__)


def of_jax(argument: str, x: Any) -> errors.ArgumentError:
    """The error for an array or tracer of jax; the message calls it `argument`."""
    if is_tracer_of_jax(x):
        return errors.ArgumentError(
            f"{argument} is a tracer of jax, of type {x.aval}: a transformation of jax (jax.grad, jax.jit, jax.vmap) "
            "runs this function, and cannot see the operations of phlox",
            instead="phlox.grad, phlox.jit, phlox.vmap in place of jax's; phlox.adopt(library) for a library that "
            "imports jax",
            argument=argument,
            value=x,
        )
    return errors.ArgumentError(
        f"{argument} is an array of jax, of type {x.aval}, not of phlox",
        instead="phlox.numpy.asarray(x), which copies it; phlox.adopt(library) for a library that imports jax",
        argument=argument,
        value=x,
    )


def offered_to_jax(what: str, x: Any, caller: FrameType) -> ForeignArrayError | None:
    """The error for an array or tracer `x` of phlox that code of jax, in the frame `caller`, got; None in other code.

    jax asks every object for ``__jax_array__`` before it refuses it as "not a valid JAX type".
    """
    module = str(caller.f_globals.get("__name__"))
    # Code of jax that converts with NumPy may have the values: `np.asarray` would give them, too.
    if not module.startswith("jax._src.") or (module == _CONVERTING and hasattr(x, "_buf")):
        return None
    library, frame = "", caller
    # The first frame outside of jax, phlox and libraries is the user's; a library on the way is what to adopt.
    while frame is not None and (_package(frame) == "jax" or _is_installed(frame) or source.is_internal(_file(frame))):
        if _package(frame) not in ("jax", "phlox"):
            library = _package(frame)
        frame = frame.f_back  # type: ignore[assignment]
    return ForeignArrayError(
        f"jax got {what} of phlox: functions of jax take arrays of jax",
        instead=f"phlox.adopt({library!r}), which runs {library} on phlox"
        if library
        else "the function of the same name in phlox, as phlox.grad for jax.grad; np.asarray(x) for the values",
        where=None if frame is None else source.Location(frame.f_code, frame.f_lasti),
        value=x,
    )


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]


def _file(frame: FrameType) -> str:
    return frame.f_code.co_filename


def _is_installed(frame: FrameType) -> bool:
    """Whether the code is that of an installed library, or of Python."""
    return "site-packages" in _file(frame) or _file(frame).startswith((sys.prefix, "<frozen"))
