"""``phlox.experimental.pjit``: the former name of `phlox.jit` with shardings, as in ``jax.experimental.pjit``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from phlox import NamedSharding, P, jit, tree
from phlox.extend import publish

from .._core import config, current_trace

__all__ = ["pjit"]

_UNSPECIFIED = object()


def pjit(
    fun: Callable[..., Any] | None = None,
    in_shardings: Any = _UNSPECIFIED,
    out_shardings: Any = _UNSPECIFIED,
    **options: Any,
) -> Any:
    """`phlox.jit`, for programs with ``with mesh:``. Inside of such a block the function runs on the mesh, and None
    among the shardings means that each device has the whole array.

    Args:
      fun: function of arrays, as for `phlox.jit`. None returns a decorator.
      in_shardings, out_shardings: as for `phlox.jit`, which leaves the choice to the compiler where they are not given.
      **options: the other options of `phlox.jit`.

    Returns:
      A function that is called as `fun` is, with the methods ``lower``, ``trace`` and ``eval_shape``.

    >>> import phlox
    >>> with phlox.make_mesh((1,), ("x",), (phlox.sharding.AxisType.Auto,)):
    ...     pjit(lambda x: x + 1, out_shardings=None)(1.0).sharding.spec
    P()
    """
    shardings = {"in_shardings": in_shardings, "out_shardings": out_shardings}
    shardings = {name: value for name, value in shardings.items() if value is not _UNSPECIFIED}
    if fun is None:
        return functools.partial(pjit, **shardings, **options)

    @functools.cache
    def on_mesh(mesh: Any) -> Any:
        return jit(fun, **{name: _whole_for_none(mesh, value) for name, value in shardings.items()}, **options)

    on_mesh(None)  # mistakes in the options are errors here, and not at the first call

    def jitted() -> Any:
        return on_mesh(config.current().entered_mesh)

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        mesh = config.current().entered_mesh
        if mesh is None or current_trace.get() is not None:
            return jitted()(*args, **kwargs)
        with config.scope(device_context=mesh):
            return on_mesh(mesh)(*args, **kwargs)

    call.lower = lambda *args, **kwargs: jitted().lower(*args, **kwargs)  # type: ignore[attr-defined]
    call.trace = lambda *args, **kwargs: jitted().trace(*args, **kwargs)  # type: ignore[attr-defined]
    call.eval_shape = lambda *args, **kwargs: jitted().eval_shape(*args, **kwargs)  # type: ignore[attr-defined]
    return call


def _whole_for_none(mesh: Any, shardings: Any) -> Any:
    if mesh is None:
        return shardings
    whole = NamedSharding(mesh, P())
    return tree.map(lambda leaf: whole if leaf is None else leaf, shardings, is_leaf=lambda leaf: leaf is None)


publish(__name__)
