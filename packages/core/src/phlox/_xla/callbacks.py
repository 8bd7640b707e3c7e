"""Callbacks: Python functions that compiled programs call; and the execution of programs with effects.

XLA calls from its own threads, with NumPy views of its memory; the user's function gets copies, as arrays. A run of a
program with effects returns a token; `effects_barrier` waits for these tokens.
"""

from __future__ import annotations

import atexit
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from .._base import config
from .._base.errors import CallbackError, CheckError, DeviceError, EffectError, UnsupportedError
from .._base.native import native
from .._base.source import Location, user_location
from .._ir import dtypes
from .._ir.avals import ShapedArray, typeof_value
from .._ir.effects import Effects, ordered
from .array import Array, put
from .devices import local_devices
from .foreign import foreign_call, row_majors, typed
from .platforms import platform_of
from .sharding import SingleDeviceSharding, single_device
from .text import TOKEN, Function, Value, quoted
from .transfer import clean_bools


class _Thread(threading.local):
    #: whether this thread runs a callback
    inside = False


_thread = _Thread()
# A bound, because the error of a program may never be asked for.
#: exceptions of callbacks, until the error of their program is raised in the caller's thread
_raised: deque[BaseException] = deque(maxlen=8)
#: a training loop that prints in each step never waits for its tokens, so that old ones are dropped above this number
_MOST_TOKENS = 1024
_tokens: list[Any] = []
_ordered_tokens: list[Any] = []
_lock = threading.Lock()


# --- calling Python -------------------------------------------------------------------------------------


def on_host(fun: Callable[..., Sequence[Any]], what: str, out_avals: Sequence[ShapedArray]) -> Callable[..., Any]:
    """`fun`, a function of arrays, as a function of NumPy arrays whose results are checked against `out_avals`."""
    # Read while the program is traced: the dtypes of its arguments depend on it.
    enable_x64 = config.current().enable_x64

    def call(*values: np.ndarray) -> tuple[np.ndarray, ...]:
        outer, _thread.inside = _thread.inside, True
        try:
            # XLA's threads do not have the settings of the thread that traced the program.
            with config.scope(enable_x64=enable_x64):
                return checked(fun(*[_copied(x) for x in values]), what, out_avals)
        # XLA passes on only the text of an exception, so the object is stored here for `_cause`.
        except BaseException as error:
            with _lock:
                _raised.append(error)
            raise
        finally:
            _thread.inside = outer

    return call


def call_directly(fun: Callable[..., Sequence[Any]], what: str, args: Sequence[Any]) -> Sequence[Any]:
    """Calls a callback outside of a program. Its exception is the cause of the error that a program would raise."""
    try:
        return fun(*args)
    except (CheckError, native.JaxRuntimeError):
        raise
    except Exception as error:
        raise native.JaxRuntimeError(f"INTERNAL: {what} raised {type(error).__name__}: {error}") from error


def _copied(view: np.ndarray) -> Array:
    """A copy of a view of XLA's memory, as an array."""
    # jaxlib copies in this thread, before `put` returns. XLA's own threads may all be waiting for callbacks.
    aval = typeof_value(view)
    assert aval is not None
    return put(view, aval, single_device(local_devices(backend="cpu")[0]))


def checked(outs: Sequence[Any], what: str, out_avals: Sequence[ShapedArray]) -> tuple[np.ndarray, ...]:
    """The results of a callback as NumPy arrays. Raises `CallbackError` if their types are not `out_avals`."""
    if len(outs) != len(out_avals):
        raise CallbackError(
            f"{what} returned {len(outs)} arrays where result_shape_dtypes promises {len(out_avals)}",
            instead="a tree of the structure of result_shape_dtypes",
        )
    results = []
    for i, (out, expected) in enumerate(zip(outs, out_avals, strict=True)):
        host = np.asarray(out)
        # NumPy computes in 64 bits; without `enable_x64` the program expects 32.
        host = host.astype(dtypes.canonical(host.dtype), copy=False)
        if (host.shape, host.dtype) != (expected.shape, expected.dtype):
            have = typeof_value(host)
            raise CallbackError(
                f"{what} returned {have.short if have else host.dtype} as result {i}, "
                f"where result_shape_dtypes promises {expected.short}",
                instead=f"np.asarray(..., np.{expected.dtype.name}) of shape {expected.shape}, "
                "or the type that it returns",
                expected=expected,
                got=have,
            )
        results.append(clean_bools(host) if host.dtype == bool else host)
    return tuple(results)


def call_host(
    f: Function,
    operands: Sequence[Value],
    fun: Callable[..., Any],
    outs: Sequence[ShapedArray],
    *,
    effects: Effects,
    partitioned: bool = False,
    sharding: SingleDeviceSharding | None = None,
) -> list[Value]:
    """Adds the custom call of `fun`, a result of `on_host`, by the device of `sharding`; returns its results."""
    in_order = ordered(effects)
    if in_order:
        # XLA orders calls by tokens. One arrives in Python as None, and is passed on as first result.
        operands, outs = [f.order(), *operands], [TOKEN, *outs]
        called = fun

        def fun(token: Any, *values: Any) -> tuple[Any, ...]:
            return (token, *called(*values))

    module = f.module
    # The position in the list that `compile_and_load` gets is how XLA finds the function.
    index = len(module.callbacks)
    module.callbacks.append(fun)
    kind = "gpu" if platform_of(f) in ("cuda", "rocm") else "cpu"
    target = f"xla_ffi_{'partitioned_' * partitioned}python_{kind}_callback"
    results = foreign_call(
        f,
        target,
        operands,
        outs,
        typed({"index": f"{index} : ui64"}),
        layouts=(row_majors([x.aval for x in operands]), row_majors(outs)),
        # Without side effects XLA may drop the call, or merge equal ones.
        has_side_effect=bool(effects),
        marks=_place(f, outs, sharding),
    )
    if in_order:
        f.token = results.pop(0)
    return results if module.partitions == 1 or f.axes else [_replicated(f, x) for x in results]


def _caller(f: Function, sharding: SingleDeviceSharding | None) -> int:
    """The position of the device of `sharding` among those of the program."""
    if sharding is None:
        return 0
    if f.axes:
        raise UnsupportedError(
            "callbacks do not support specifying sharding inside of shard_map and pmap", instead="no sharding"
        )
    devices = list(f.module.devices)
    if sharding.device not in devices:
        raise DeviceError(f"the callback is to run on {sharding.device}, the program runs on {devices}")
    return devices.index(sharding.device)


def _place(f: Function, outs: Sequence[ShapedArray], sharding: SingleDeviceSharding | None) -> str:
    """The sharding attribute that selects the calling devices.

    Inside of `shard_map` every device calls, with its part; elsewhere one device calls, with the whole arrays.
    """
    caller = _caller(f, sharding)
    if f.module.partitions == 1:
        return ""
    if f.auto:
        raise EffectError(
            f"a callback where some axes of the mesh ({', '.join(map(str, f.auto))}) are not mapped",
            instead="shard_map over all axes of the mesh around it",
            effects=(),
        )
    by_hand = bool(f.axes)
    if not f.module.shardy:
        return f"mhlo.sharding = {quoted('{manual}' if by_hand else f'{{maximal device={caller}}}')}"
    if by_hand:
        symbol = f.module.mesh(())
        parts = [f"<@{symbol}, [{', '.join(['{}'] * a.ndim)}]>" for a in outs] or [f"<@{symbol}, []>"]
    else:
        parts = [f"<@{f.module.mesh((), (caller,))}, []>"] * max(1, len(outs))
    return f"sdy.sharding = #sdy.sharding_per_value<[{', '.join(parts)}]>"


def _replicated(f: Function, x: Value) -> Value:
    """The result of the first device's call, replicated to all devices."""
    module = f.module
    if not module.shardy:
        attributes = 'call_target_name = "Sharding"'
        return f.op("stablehlo.custom_call", [x], x.aval, attributes, marks='mhlo.sharding = "{replicated}"')
    mesh = module.mesh_symbol(module.mesh_of_arguments)
    sharding = f"<@{mesh}, [{', '.join(['{}'] * x.aval.ndim)}]>"
    name = f.fresh()
    f.line(f"{name} = sdy.sharding_constraint {x} {sharding} : {x.aval.text}")
    return Value(name, x.aval)


# --- execution of programs with callbacks ---------------------------------------------------------------


def observed(executable: Any, effects: Effects, is_ours: bool) -> Callable[[Sequence[Any]], Any]:
    """The `execute` function of a program with callbacks or effects.

    It keeps the token of each run. With ordered effects, a run first waits for the tokens of earlier ordered runs.
    `is_ours`: the program is of a function of phlox, and errors are located at its caller.
    """
    in_order = ordered(effects)

    def execute(bufs: Sequence[Any]) -> Any:
        # A callback that runs an ordered program must not wait for the token of its own run, which ends after it.
        if in_order and not _thread.inside:
            _wait(_ordered_tokens)
        try:
            results = executable.execute_sharded(bufs, with_tokens=True)
        except native.JaxRuntimeError as error:
            _raise(error, user_location() if is_ours else None)
        if effects:
            with _lock:
                (_ordered_tokens if in_order else _tokens).append(results.consume_token())
            # A callback must not wait for the token of its own run.
            if len(_tokens) > _MOST_TOKENS and not _thread.inside:
                _drop_ended()
        return results

    return execute


def _drop_ended() -> None:
    """Drops the older half of the tokens, whose runs have ended long ago; the first that failed stays for `_wait`."""
    with _lock:
        old, _tokens[:] = _tokens[: _MOST_TOKENS // 2], _tokens[_MOST_TOKENS // 2 :]
    failed = []
    for token in old:
        try:
            token.block_until_ready()
        except native.JaxRuntimeError:
            failed.append(token)
    with _lock:
        _tokens[:0] = failed[:1]


def _wait(tokens: list[Any]) -> None:
    # Taken under the lock, waited for without it: callbacks of these runs take it too.
    with _lock:
        waiting, tokens[:] = list(tokens), []
    for token in waiting:
        try:
            token.block_until_ready()
        except native.JaxRuntimeError as error:
            _raise(error)


def _raise(error: BaseException, where: Location | None = None) -> NoReturn:
    """Raises the error of a failed run, from the callback's exception; or the exception itself if it is a `CheckError`,
    which is meant for the user, located at `where` if that is given."""
    cause = _cause(error)
    if isinstance(cause, CheckError):
        cause.where = where or cause.where
        raise cause.with_traceback(None) from None
    raise error from cause


def _cause(error: BaseException) -> BaseException | None:
    """The callback's exception that made a program fail, or None.

    It is found by its class name and message, which the runtime's error contains.
    """
    message = str(error)
    with _lock:
        for cause in _raised:
            # The end of `__qualname__`, as `phlox.as_jax` changes the `__name__` of errors.
            if type(cause).__qualname__.rpartition(".")[2] in message and str(cause) in message:
                _raised.remove(cause)
                return cause
    return None


def effects_barrier() -> None:
    """Waits until all effects of started programs have happened: everything is printed, written, called.

    Raises the exceptions of callbacks. Called automatically when the process ends.

    Returns:
      None, when all effects have happened.

    >>> seen = []
    >>> phlox.jit(lambda x: phlox.debug.callback(lambda v: seen.append(int(v)), x))(3)
    >>> phlox.effects_barrier()
    >>> seen
    [3]
    """
    _wait(_ordered_tokens)
    _wait(_tokens)


# Python would end while XLA's threads still call into it, and prints would be lost.
atexit.register(effects_barrier)
