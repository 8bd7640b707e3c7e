"""Removes phlox's frames from tracebacks."""

from __future__ import annotations

import contextlib
import functools
import sys
from types import TracebackType

from . import config, source
from .errors import PhloxError

#: the note of an error whose traceback was trimmed, with the words of JAX's note that programs look for
_NOTE = "For simplicity, frames of phlox are not in this traceback. JAX_TRACEBACK_FILTERING=off shows them."


def trim(error: BaseException) -> None:
    """Removes phlox's own frames from `error`'s traceback.

    With the flag `traceback_filtering` "off", nothing is removed; with "tracebackhide", phlox's frames are only marked,
    and IPython and pytest hide them. With "quiet_remove_frames" a note of the error says that frames are missing.

    Must be called where phlox calls a user's function, and followed by ``raise`` alone: ``raise error`` would add the
    frame of phlox again. Python adds the callers' frames afterwards.
    """
    filtering = config.current().traceback_filtering
    if filtering == "off":
        return
    # IPython asks the error itself for its traceback, and not its class alone.
    if "IPython" in sys.modules and not hasattr(error, "_render_traceback_"):
        with contextlib.suppress(AttributeError):  # an exception with slots
            error._render_traceback_ = functools.partial(rendered, error)  # type: ignore[attr-defined]
    user_frames: list[TracebackType] = []
    trace = error.__traceback__
    while trace is not None:
        if not source.is_internal(trace.tb_frame.f_code.co_filename):
            user_frames.append(trace)
        elif filtering == "tracebackhide":
            # IPython and pytest look for this local variable in each frame.
            trace.tb_frame.f_locals["__tracebackhide__"] = True
        trace = trace.tb_next
    if filtering == "tracebackhide":
        return
    # From the innermost frame outwards, as each entry refers to the next inner one.
    rebuilt: TracebackType | None = None
    for trace in reversed(user_frames):
        rebuilt = TracebackType(rebuilt, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)
    error.__traceback__ = rebuilt
    if filtering == "quiet_remove_frames" and _NOTE not in getattr(error, "__notes__", ()):
        error.add_note(_NOTE)


def rendered(error: BaseException) -> list[str]:
    """The traceback in a notebook, without phlox's frames: what IPython gets of ``error._render_traceback_()``."""
    trim(error)
    shell = sys.modules["IPython"].get_ipython()
    return shell.InteractiveTB.structured_traceback(type(error), error, error.__traceback__)


# IPython asks errors for their traceback by this method. It is set here, as errors.py is below this module.
PhloxError._render_traceback_ = rendered  # type: ignore[attr-defined]
