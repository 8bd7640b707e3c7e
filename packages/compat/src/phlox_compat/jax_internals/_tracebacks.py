"""``jax._src.traceback_util`` and ``jax.extend.source_info_util``: which frames belong to libraries."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

from phlox.extend import Location

from .._core import HiddenPaths, calling, grad, is_internal, scope_text, user_functions

# haiku groups equations by ``str(eqn.source_info.name_stack)``.
Location.name_stack = property(lambda location: scope_text(location.scope))  # type: ignore[attr-defined]


#: flax adds its files here, and takes them out for ``flax.traceback_util.show_flax_in_tracebacks``
_exclude_paths = HiddenPaths()


def register_exclusion(path: str) -> None:
    """Hides the frames of a file, or of the files of a folder, in locations and errors."""
    if path not in _exclude_paths:
        _exclude_paths.append(path)


def include_frame(frame: FrameType) -> bool:
    """Whether a frame belongs to the program."""
    return not is_internal(frame.f_code.co_filename)


def api_boundary(fun: Callable[..., Any] | None = None, **_options: Any) -> Any:
    """`fun` itself: phlox trims tracebacks where it calls a user's function."""
    return (lambda decorated: decorated) if fun is None else fun


def mark_transformations() -> None:
    """Makes `api_boundary` a global name of the functions that transformations return: by it chex recognizes them."""
    for module in (calling, user_functions, grad):
        vars(module)["api_boundary"] = api_boundary


def current() -> None:
    """The location of the current operation; phlox finds it where an operation is recorded."""
    return None


def summarize(source_info: Any, num_frames: int = 1) -> str:
    """The line of the user's program that recorded an equation."""
    return "unknown" if source_info is None else str(source_info)


def user_context(*_args: Any, **_kwargs: Any) -> Any:
    """A context that does nothing."""
    import contextlib

    return contextlib.nullcontext()
