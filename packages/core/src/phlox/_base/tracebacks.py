"""Tracebacks as users see them: their own frames, without ours in between."""

from __future__ import annotations

from types import TracebackType

from . import config, source


def trim(error: BaseException) -> BaseException:
    """Removes our own frames from the middle of `error`'s traceback, so that the user's lines stand out.

    With the flag `traceback_filtering` off, nothing is removed; with "tracebackhide", our frames are marked for IPython
    and pytest, which leave them out. Called where a user's function is run on the user's
    behalf; the frames above the caller are added by Python while the error travels on.
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
