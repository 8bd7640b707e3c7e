"""Removes phlox's frames from tracebacks."""

from __future__ import annotations

from types import TracebackType

from . import config, source


def trim(error: BaseException) -> BaseException:
    """Removes phlox's own frames from `error`'s traceback; returns `error`.

    With the flag `traceback_filtering` "off", nothing is removed; with "tracebackhide", phlox's frames are only marked,
    and IPython and pytest hide them. Must be called where phlox calls a user's function: the traceback ends at that
    frame, and Python adds the callers' frames afterwards.
    """
    filtering = config.current().traceback_filtering
    if filtering == "off":
        return error
    kept: list[TracebackType] = []
    trace = error.__traceback__
    while trace is not None:
        if not source.is_internal(trace.tb_frame.f_code.co_filename):
            kept.append(trace)
        elif filtering == "tracebackhide":
            trace.tb_frame.f_locals["__tracebackhide__"] = True
        trace = trace.tb_next
    if filtering == "tracebackhide":
        return error
    rebuilt: TracebackType | None = None
    for trace in reversed(kept):
        rebuilt = TracebackType(rebuilt, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)
    return error.with_traceback(rebuilt)
