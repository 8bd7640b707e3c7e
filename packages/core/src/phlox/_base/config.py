"""Settings: one table of flags, process-wide values, and scoped overrides that hold for one thread of control.

A `Settings` is an immutable snapshot. Caches key on `Settings.traced`, an interned object that changes
identity only when a flag that can change a traced program changes, so the hot path compares one pointer.

Every flag ``name`` can be set by ``phlox.config.update("name", value)`` (JAX's ``jax_name`` is understood
too), by the environment variable ``PHLOX_NAME``, and by the context manager ``phlox.config.scope(name=value)``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from .errors import PhloxError


class ConfigError(PhloxError, AttributeError, ValueError):
    """A flag that does not exist, or a value that it cannot take."""


def _boolean(value: Any) -> bool:
    if isinstance(value, str):
        text = value.strip().lower()
        if text in ("1", "true", "yes", "on"):
            return True
        if text in ("0", "false", "no", "off", ""):
            return False
    elif value in (0, 1):
        return bool(value)
    raise ValueError("True or False")


def _integer(value: Any) -> int:
    number = int(value)
    if number < 0:
        raise ValueError("a number that is not negative")
    return number


def _text(value: Any) -> str | None:
    return None if value is None else os.fspath(value)


def _one_of(*choices: str | None) -> Callable[[Any], Any]:
    def parse(value: Any) -> Any:
        if value not in choices:
            raise ValueError("one of " + ", ".join(repr(choice) for choice in choices))
        return value

    return parse


def _anything(value: Any) -> Any:
    return value


class Flag(NamedTuple):
    """One row of the table: how to read a value, its default, and whether traced programs depend on it."""

    parse: Callable[[Any], Any]
    default: Any
    traced: bool
    doc: str


_PRECISIONS = (None, "default", "high", "highest", "bfloat16", "tensorfloat32", "float32")

FLAGS: dict[str, Flag] = {
    "enable_x64": Flag(_boolean, False, True, "Keep 64-bit types instead of turning them into 32-bit ones."),
    "numpy_dtype_promotion": Flag(
        _one_of("standard", "strict"), "standard", True, "'strict' refuses to promote between array dtypes."
    ),
    "numpy_rank_promotion": Flag(
        _one_of("allow", "warn", "raise"), "allow", True, "What to do when arrays of different rank broadcast."
    ),
    "default_matmul_precision": Flag(_one_of(*_PRECISIONS), None, True, "Precision of matrix products."),
    "default_device": Flag(_anything, None, True, "Device for arrays that no argument places elsewhere."),
    "disable_jit": Flag(_boolean, False, True, "Run jitted functions operation by operation, for debugging."),
    "num_cpu_devices": Flag(_integer, 0, False, "Number of virtual CPU devices (0: what XLA_FLAGS says, or 1)."),
    "platforms": Flag(_text, None, False, "Platforms to look for, in order of preference, as 'cuda,cpu'."),
    "enable_compilation_cache": Flag(_boolean, True, False, "Keep compiled programs on disk between processes."),
    "compilation_cache_dir": Flag(_text, None, False, "Folder of that cache (default: the user's cache folder)."),
    "compilation_cache_max_size": Flag(_integer, 1 << 30, False, "Bytes that cache may hold."),
    "traceback_filtering": Flag(_one_of("auto", "off"), "auto", False, "'off' shows phlox's own frames in errors."),
}
_NAMES = tuple(FLAGS)
_TRACED = tuple(name for name, flag in FLAGS.items() if flag.traced)
_traced_values: dict[tuple[Any, ...], tuple[Any, ...]] = {}


class Settings:
    """An immutable value of every flag, readable as attributes."""

    __slots__ = (*_NAMES, "traced")

    def __init__(self, values: dict[str, Any]):
        for name in _NAMES:
            object.__setattr__(self, name, values[name])
        key = tuple(values[name] for name in _TRACED)
        object.__setattr__(self, "traced", _traced_values.setdefault(key, key))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("Settings are immutable; use config.update or config.scope")

    def replace(self, changes: dict[str, Any]) -> Settings:
        """A copy with `changes` applied."""
        return Settings({name: changes.get(name, getattr(self, name)) for name in _NAMES})

    if TYPE_CHECKING:  # the slots are made from the table, which a type checker cannot follow

        def __getattr__(self, name: str) -> Any: ...


def _check(name: str, value: Any) -> tuple[str, Any]:
    short = name.removeprefix("jax_").removeprefix("phlox_")
    flag = FLAGS.get(short)
    if flag is None:
        known = ", ".join(_NAMES)
        raise ConfigError(f"there is no configuration flag {name!r}", instead=f"one of {known}", flag=name)
    try:
        return short, flag.parse(value)
    except (ValueError, TypeError) as error:
        raise ConfigError(
            f"configuration flag {short!r} got {value!r}", instead=str(error), flag=short, value=value
        ) from None


def _from_environment() -> Settings:
    values = {name: flag.default for name, flag in FLAGS.items()}
    for name in _NAMES:
        text = os.environ.get("PHLOX_" + name.upper())
        if text is not None:
            values[name] = _check(name, text)[1]
    return Settings(values)


class _Scope:
    """Overrides of one `with` block, merged with the process-wide values when those change."""

    __slots__ = ("base", "merged", "overrides")

    def __init__(self, overrides: dict[str, Any]):
        self.overrides = overrides
        self.base: Settings | None = None
        self.merged: Settings

    def settings(self) -> Settings:
        if self.base is not _process:
            self.base = _process
            self.merged = _process.replace(self.overrides)
        return self.merged


_process = _from_environment()
_scope: ContextVar[_Scope | None] = ContextVar("phlox_config", default=None)


def current() -> Settings:
    """The settings in force here and now."""
    scope = _scope.get()
    return _process if scope is None else scope.settings()


def update(name: str, value: Any) -> None:
    """Sets a flag for the whole process."""
    global _process
    short, parsed = _check(name, value)
    _process = _process.replace({short: parsed})


def read(name: str) -> Any:
    """The value of a flag that is in force here."""
    short = name.removeprefix("jax_").removeprefix("phlox_")
    if short not in FLAGS:
        raise ConfigError(f"there is no configuration flag {name!r}", instead="one of " + ", ".join(_NAMES))
    return getattr(current(), short)


@contextmanager
def scope(**changes: Any) -> Iterator[None]:
    """Sets flags for the body of a ``with`` block, in this thread (and its async tasks) alone."""
    checked = dict(_check(name, value) for name, value in changes.items())
    outer = _scope.get()
    token = _scope.set(_Scope({**outer.overrides, **checked} if outer else checked))
    try:
        yield
    finally:
        _scope.reset(token)
