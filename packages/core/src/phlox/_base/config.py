"""Settings: the table of flags, their process-wide values, and scoped overrides for one thread or async task.

A `Settings` is an immutable snapshot. Its fingerprints are part of cache keys: `trace_fingerprint` changes with each
flag that can change a traced Jaxpr, `execution_fingerprint` with those that change how a compiled program is run, and
`call_fingerprint` with both. Fingerprints are interned, so that the fast path compares one pointer.

Every flag ``name`` can be set by ``phlox.config.update("name", value)`` (JAX's ``jax_name`` is understood
too), by the environment variable ``PHLOX_NAME`` or else ``JAX_NAME``, and by the context manager
``phlox.config.scope(name=value)``.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from .errors import ConfigError
from .interning import Interned, clear_if_full
from .scoped import scoped


def _boolean(value: Any) -> bool:
    if isinstance(value, str):
        # As in environment variables; an empty one counts as off.
        text = value.strip().lower()
        if text in ("1", "true", "yes", "on"):
            return True
        if text in ("0", "false", "no", "off", ""):
            return False
    elif value in (0, 1):
        return bool(value)
    # The text becomes the end of an error message, after "instead:".
    raise ValueError("True or False")


def _integer(value: Any) -> int:
    number = int(value)
    if number < 0:
        raise ValueError("a number that is not negative")
    return number


def _count(value: Any) -> int:
    return 0 if str(value) == "-1" else _integer(value)  # -1 is jax's value for "not set"


def _text(value: Any) -> str | None:
    return None if value is None else os.fspath(value)


def _pattern(value: Any) -> str:
    import re

    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"a regular expression ({error})") from None
    return str(value)


def _devices(value: Any) -> str:
    text = str(value)
    if text != "all" and not all(part.strip().isdecimal() for part in text.split(",")):
        raise ValueError("'all', or numbers of devices as '0,2'")
    return text


def _one_of(*choices: str | None) -> Callable[[Any], Any]:
    def parse(value: Any) -> Any:
        if value not in choices:
            raise ValueError("one of " + ", ".join(repr(choice) for choice in choices))
        return value

    return parse


def _device(value: Any) -> Any:
    if not (value is None or isinstance(value, str) or hasattr(value, "platform")):
        raise ValueError("a Device, the name of a platform such as 'cpu', or None")
    return value


def _anything(value: Any) -> Any:
    return value


def _or_none(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A parser that also accepts None, or "" in an environment variable, for None."""
    return lambda value: None if value is None or value == "" else parse(value)


def _contexts(value: Any) -> tuple[tuple[Any, Any], ...]:
    if not isinstance(value, tuple):
        raise ValueError("make_user_context")
    return value


class Flag(NamedTuple):
    """One row of the table: the parser of values, the default, and what depends on the flag.

    `traced`: tracing depends on the flag. `executed`: running compiled programs depends on it, or whether operations
    are refused.
    """

    parse: Callable[[Any], Any]
    default: Any
    traced: bool
    doc: str
    executed: bool = False


_PRECISIONS = (None, "default", "high", "highest", "bfloat16", "tensorfloat32", "float32")
#: names of `phlox.lax.DotAlgorithmPreset`, which `default_matmul_precision` also accepts
ALGORITHMS = (
    *("ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM", "ANY_F8_ANY_F8_ANY", "ANY_F8_ANY_F8_ANY_FAST_ACCUM"),
    *("F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16", "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6"),
    *("BF16_BF16_F32_X9", "TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64"),
)
_GUARD = _or_none(_one_of("allow", "log", "disallow", "log_explicit", "disallow_explicit"))

# Name -> parser, default, whether tracing depends on it, text, whether execution does. A flag that a cached trace or
# program depends on and that is not marked here gives stale results.
FLAGS: dict[str, Flag] = {
    "enable_x64": Flag(_boolean, False, True, "Keep 64-bit types instead of turning them into 32-bit ones."),
    "explicit_x64_dtypes": Flag(
        _one_of("warn", "error", "allow"),
        "warn",
        True,
        "64-bit types that are named: narrowed, refused, or kept.",
        True,
    ),
    "numpy_dtype_promotion": Flag(
        _one_of("standard", "strict"), "standard", True, "'strict' refuses to promote between array dtypes."
    ),
    "numpy_rank_promotion": Flag(
        _one_of("allow", "warn", "raise"), "allow", True, "What to do when arrays of different rank broadcast."
    ),
    "default_matmul_precision": Flag(
        _one_of(*_PRECISIONS, *ALGORITHMS), None, True, "Precision of matrix products, or an algorithm."
    ),
    "default_device": Flag(_device, None, True, "Device for arrays that no argument places elsewhere.", True),
    "mesh": Flag(_anything, None, True, "The mesh for PartitionSpecs that are given without one; see phlox.set_mesh."),
    "entered_mesh": Flag(_anything, None, True, "The mesh of `with mesh:`, for PartitionSpecs if `mesh` is not set."),
    "device_context": Flag(
        _anything, None, False, "The mesh where new arrays lie; phlox.set_mesh sets it together with `mesh`.", True
    ),
    "disable_jit": Flag(_boolean, False, True, "Run jitted functions operation by operation, for debugging."),
    "num_cpu_devices": Flag(
        _count,
        0,
        False,
        "Number of virtual CPU devices (0: what XLA_FLAGS says, or 1).",
    ),
    "cpu_enable_async_dispatch": Flag(_boolean, True, False, "False waits for each program on CPUs to end."),
    "platforms": Flag(_text, None, False, "Platforms in order of preference, as 'cuda,cpu'."),
    "cuda_visible_devices": Flag(_devices, "all", False, "NVIDIA GPUs to use: 'all', or numbers as '0,2'."),
    "rocm_visible_devices": Flag(_devices, "all", False, "AMD GPUs to use: 'all', or numbers as '0,2'."),
    "enable_compilation_cache": Flag(_boolean, True, False, "Keep compiled programs on disk between processes."),
    "compilation_cache_dir": Flag(_text, None, False, "Folder of the disk cache (default: the user's cache folder)."),
    "compilation_cache_max_size": Flag(
        lambda value: -1 if str(value) == "-1" else _integer(value),
        1 << 30,
        False,
        "Maximal size of the disk cache in bytes (-1: no limit).",
    ),
    "compile_effort": Flag(
        _one_of("default", "fast", "tiered"),
        "default",
        False,
        "'fast' compiles with fewer optimizations; 'tiered' quickly for the first calls, then in full on a thread.",
        True,
    ),
    "native_kernels": Flag(
        _boolean, True, False, "Use the kernels of the package phlox-kernels where it is installed.", True
    ),
    "traceback_filtering": Flag(
        _one_of("auto", "off", "tracebackhide", "remove_frames", "quiet_remove_frames"),
        "auto",
        False,
        "'off' shows phlox's own frames in errors, 'tracebackhide' hides them from IPython and pytest alone.",
    ),
    # Debugging.
    "debug_nans": Flag(
        _boolean, False, False, "Check all results for nan, and report the operation that gave it.", True
    ),
    "debug_infs": Flag(_boolean, False, False, "Check all results for infinities, as debug_nans does for nan.", True),
    "checks": Flag(
        _one_of("off", "default", "strict"),
        "default",
        True,
        "Traps such as recompilation in a loop: passed over, warned of once a line, or refused.",
        True,
    ),
    "check_tracer_leaks": Flag(_boolean, False, True, "Report traced values that outlive their transformation."),
    "enable_checks": Flag(_boolean, False, True, "Check that each Jaxpr is well-formed and well-typed. Slow."),
    "check_static_indices": Flag(_boolean, False, True, "Refuse Python integers as indices that are out of bounds."),
    "log_compiles": Flag(_boolean, False, False, "Log what is traced and compiled, and how long it took."),
    "log_checkpoint_residuals": Flag(_boolean, False, False, "Log as a warning which residuals checkpoint saves."),
    "logging_level": Flag(
        _or_none(_one_of("NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")),
        "NOTSET",
        False,
        "The lowest level of messages that are written to stderr.",
    ),
    "debug_log_modules": Flag(
        _text, "", False, "Names of loggers, such as phlox, all of whose messages are written to stderr."
    ),
    "dump_ir_to": Flag(_text, "", False, "The folder into which each program is written when it is compiled."),
    "dump_ir_modes": Flag(str, "stablehlo", False, "What is written there: stablehlo, jaxpr, or both, as 'a,b'."),
    "include_debug_info_in_dumps": Flag(_boolean, True, False, "Write locations and name scopes there, too."),
    "hlo_source_file_canonicalization_regex": Flag(
        _or_none(_pattern), None, False, "What is left out of the names of source files in programs, such as '.*/src/'."
    ),
    "explain_cache_misses": Flag(_boolean, False, False, "Log why a jitted function had to be traced again."),
    "jaxlike_lowering_size": Flag(
        _integer,
        0,
        True,
        "Arrays of at most this many elements are lowered exactly as in JAX, so that results have the same last bits.",
        True,
    ),
    "generated_calls": Flag(
        _boolean, True, False, "Generate code for a jitted function at its first call, which makes later calls faster."
    ),
    "no_tracing": Flag(_boolean, False, False, "Refuse to trace jitted functions."),
    "no_execution": Flag(_boolean, False, False, "Refuse to run compiled programs.", True),
    "transfer_guard": Flag(_GUARD, None, False, "What to do about transfers; sets the three flags of directions."),
    "transfer_guard_host_to_device": Flag(_GUARD, None, False, "Transfers from the host to a device.", True),
    "transfer_guard_device_to_device": Flag(_GUARD, None, False, "Transfers between devices.", True),
    "transfer_guard_device_to_host": Flag(_GUARD, None, False, "Transfers to the host (free on CPU: not guarded)."),
    "use_simplified_jaxpr_constants": Flag(
        _boolean, False, True, "make_jaxpr shows arrays that are closed over where they are used."
    ),
    "allow_f16_reductions": Flag(_boolean, True, True, "False refuses sums of float16 and bfloat16.", True),
    # PRNG keys.
    "legacy_prng_key": Flag(
        _one_of("allow", "warn", "error"), "allow", True, "What to do with PRNG keys that are uint32 arrays."
    ),
    "enable_custom_prng": Flag(_boolean, False, True, "PRNGKey returns new-style keys."),
    "default_prng_impl": Flag(
        _one_of("threefry2x32", "threefry4x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32"),
        "threefry2x32",
        True,
        "The PRNG implementation of keys that are made without naming one.",
    ),
    "threefry_partitionable": Flag(
        _boolean, True, True, "Random bits have a counter each; False gives the streams of JAX before 0.5.", True
    ),
    "debug_key_reuse": Flag(_boolean, False, True, "Refuse to draw from a PRNG key twice.", True),
    "high_dynamic_range_gumbel": Flag(
        _boolean, False, True, "Gumbel numbers of 64 random bits, where no `mode` is given.", True
    ),
    "random_seed_offset": Flag(int, 0, True, "A number that is added to each seed of a key.", True),
    "user_contexts": Flag(_contexts, (), True, "Values of contexts that make_user_context made."),
    "inert": Flag(_anything, (), False, "Options of JAX that have no effect in phlox: (name, value) of those set."),
}
#: Other names of flags.
_ALIASES = {"platform_name": "platforms", "x64_enabled": "enable_x64"}
#: Flags that set several others.
_GROUPS = {"transfer_guard": tuple(name for name in FLAGS if name.startswith("transfer_guard_"))}
_NAMES = tuple(FLAGS)
#: flags that `log_levels` follows
_LOGGING_FLAGS = "logging_level", "debug_log_modules"


class Fingerprint:
    """Represents the values of some flags. Equal values have one fingerprint, hashed and compared by identity."""

    __slots__ = ("__weakref__", "values")

    def __init__(self, values: tuple[Any, ...]):
        self.values = values


# Three kinds, so that each cache depends on no more flags than it must: `debug_nans` makes programs anew, and leaves
# traces as they are.
_KINDS = {
    "trace_fingerprint": tuple(name for name, flag in FLAGS.items() if flag.traced),
    "execution_fingerprint": tuple(name for name, flag in FLAGS.items() if flag.executed),
    "call_fingerprint": tuple(name for name, flag in FLAGS.items() if flag.traced or flag.executed),
}
_fingerprints: Interned[Fingerprint] = Interned()


def _fingerprint(key: tuple[Any, ...]) -> Fingerprint:
    return _fingerprints.get(key) or _fingerprints.add(key, lambda: Fingerprint(key))


#: how many results of `Settings.replace` each `Settings` caches
_MAX_REPLACED = 64


class Settings:
    """The values of all flags, as read-only attributes, and three fingerprints of them."""

    __slots__ = (*_NAMES, *_KINDS, "_replaced", "strict")
    _replaced: dict[Any, Settings]

    def __init__(self, values: dict[str, Any]):
        # `object.__setattr__`, because the class forbids assignments to its instances.
        object.__setattr__(self, "_replaced", {})
        for name in _NAMES:
            object.__setattr__(self, name, values[name])
        # Whether some promotions raise an error or warn, see strictness.py.
        strict = values["numpy_rank_promotion"] != "allow" or values["numpy_dtype_promotion"] != "standard"
        object.__setattr__(self, "strict", strict)
        for kind, names in _KINDS.items():
            # The kind is in the key, so that two kinds with the same values are two fingerprints.
            object.__setattr__(self, kind, _fingerprint((kind, *(values[name] for name in names))))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("Settings are immutable; use config.update or config.scope")

    def replace(self, changes: dict[str, Any]) -> Settings:
        """A copy with `changes` applied. It is cached, because programs enter the same ``with`` block many times."""
        # In the order in which the changes were written; another order is another entry with an equal copy.
        key, known = tuple(changes.items()), self._replaced
        settings = known.get(key)
        if settings is None:
            settings = Settings({name: changes.get(name, getattr(self, name)) for name in _NAMES})
            if "user_contexts" not in changes:  # user values may be equal but different, as 1 and True
                clear_if_full(known, _MAX_REPLACED)[key] = settings
        return settings

    if TYPE_CHECKING:  # a type checker does not see slots that are computed from the table

        def __getattr__(self, name: str) -> Any: ...


def short_name(name: str) -> str:
    """The name of a flag in the table, for any name that users give it."""
    short = name.removeprefix("jax_").removeprefix("phlox_")
    return _ALIASES.get(short, short)


def _inert_name(short: str) -> str | None:
    """JAX's name of an option without effect; None if it is none."""
    from . import inert_flags  # rarely needed

    return inert_flags.full_name(short)


def _unknown(name: str) -> ConfigError:
    return ConfigError(f"there is no configuration flag {name!r}", instead="one of " + ", ".join(_NAMES), flag=name)


def _check(name: str, value: Any) -> tuple[str, Any]:
    short = short_name(name)
    flag = FLAGS.get(short)
    try:
        if flag is not None:
            return short, flag.parse(value)
        if (inert := _inert_name(short)) is not None:
            return "inert", _with_inert(inert, value)
    except (ValueError, TypeError) as error:
        raise ConfigError(
            f"configuration flag {short!r} got {value!r}", instead=str(error), flag=short, value=value
        ) from None
    raise _unknown(name)


def _with_inert(name: str, value: Any) -> tuple[tuple[str, Any], ...]:
    """The options without effect that are set, and this one."""
    from . import inert_flags

    inert_flags.check(name, value)
    # Programs often set an option to its default; only other values are worth a line in the log.
    if value != inert_flags.DEFAULTS[name]:
        inert_flags.note(name)
    if isinstance(value, (dict, list, set)):  # what a flag holds is part of cache keys
        value = repr(value)
    return tuple({**dict(current().inert), name: value}.items())


def _checked(changes: dict[str, Any]) -> dict[str, Any]:
    """Parsed values by the short names of flags; a flag that sets several others is expanded."""
    values = {}
    for name, value in changes.items():
        short, parsed = _check(name, value)
        # `transfer_guard` sets the three directions and itself, so that it reads back as it was set.
        values.update(dict.fromkeys((short, *_GROUPS.get(short, ())), parsed))
    return values


def variables_of(name: str) -> tuple[str, ...]:
    """The environment variables that give this flag its first value; of those that are set, the first counts."""
    ours = "PHLOX_" + name.upper()
    # JAX's variables for its compilation cache are not read: that folder belongs to jax.
    return (ours,) if "compilation_cache" in name else (ours, "JAX_" + name.upper())


def _from_environment() -> Settings:
    values = {name: flag.default for name, flag in FLAGS.items()}
    for name in _NAMES:
        for variable in variables_of(name):
            text = os.environ.get(variable)
            if text is None:
                continue
            try:
                values.update(_checked({name: text}))
            except ConfigError as error:
                # A wrong value of a variable of phlox is an error; one of JAX may be meant for jax alone.
                if variable.startswith("PHLOX_"):
                    raise
                warnings.warn(f"{variable}={text} is not followed: {error}", RuntimeWarning, stacklevel=2)
            break
    for variable in sorted(os.environ):
        if variable.startswith("PHLOX_") and not is_read(variable):
            hint = near_name(variable) or ", as there is no such flag"
            warnings.warn(f"the environment variable {variable} has no effect{hint}", RuntimeWarning, stacklevel=2)
    return Settings(values)


#: prefixes of environment variables that `phlox.launch` sets, or that the project's own tools read
_OTHER_VARIABLES = ("LAUNCH_", "TEST_", "PANTS")


def is_read(variable: str) -> bool:
    """Whether a variable ``PHLOX_...`` sets a flag, or is one of `phlox.launch` or of the project's own tools."""
    flag = variable.removeprefix("PHLOX_")
    return flag.lower() in FLAGS or flag.startswith(_OTHER_VARIABLES)


def near_name(variable: str) -> str:
    """What a variable that sets no flag may have been meant for, as the end of a message; or ""."""
    import difflib

    prefix, _, flag = variable.partition("_")
    near = difflib.get_close_matches(flag.lower(), _NAMES, 1)
    return f"; did you mean {prefix}_{near[0].upper()}?" if near else ""


class _Scope:
    """The overrides of one `with` block, merged with the process-wide values; merged again when those change."""

    __slots__ = ("known", "overrides")

    def __init__(self, overrides: dict[str, Any]):
        self.overrides = overrides
        # Both in one tuple, which is replaced at once: threads may share a scope.
        #: the process-wide settings, and their copy with the overrides
        self.known = global_settings, global_settings.replace(overrides)

    def settings(self) -> Settings:
        base, merged = self.known
        if base is not global_settings:
            base = global_settings
            merged = base.replace(self.overrides)
            self.known = base, merged  # one assignment, because threads may share a scope
        return merged


#: the name of the logger whose handlers and level the logger "phlox" has. `as_jax` sets it to that of jax.
logger_name = "phlox"


def _set_log_levels() -> None:
    """Lets the loggers follow the flags for them."""
    from . import log_levels  # here, to keep `import phlox` fast

    log_levels.set_levels(logger_name, *[getattr(global_settings, name) for name in _LOGGING_FLAGS])


#: the settings outside of all scopes
global_settings = _from_environment()
if global_settings.logging_level != "NOTSET" or global_settings.debug_log_modules:
    _set_log_levels()
_updating = threading.Lock()
_scope: ContextVar[_Scope | None] = ContextVar("phlox_config", default=None)
#: overridden() is None if the current settings are `global_settings`. The fast path of calls uses it: it is a C method,
#: cheaper than the Python function `current`.
overridden = _scope.get


def current() -> Settings:
    """The current settings: the process-wide ones with the overrides of the current scope."""
    scope = _scope.get()
    return global_settings if scope is None else scope.settings()


def update(name: str, value: Any) -> None:
    """Sets a flag for the whole process."""
    global global_settings
    checked = _checked({name: value})
    # Read, changed and written under the lock, or of two threads one would lose its flag.
    with _updating:
        global_settings = global_settings.replace(checked)
    if any(name in checked for name in _LOGGING_FLAGS):
        _set_log_levels()


def read(name: str) -> Any:
    """The current value of a flag, or of an option of JAX that has no effect."""
    short = short_name(name)
    if short in FLAGS:
        return getattr(current(), short)
    inert = _inert_name(short)
    if inert is None:
        raise _unknown(name)
    from . import inert_flags

    values = dict(current().inert)
    return values[inert] if inert in values else inert_flags.first_value(inert)


def describe(name: str) -> tuple[Any, str]:
    """The default of a flag, and what it does."""
    if name in FLAGS:
        return FLAGS[name].default, FLAGS[name].doc
    from . import inert_flags

    return inert_flags.DEFAULTS[inert_flags.full_name(name) or name], "Has no effect in phlox."


def override(**changes: Any) -> None:
    """Sets flags for this thread or async task only, until the enclosing scope, if any, ends."""
    _scope.set(_with_overrides(_checked(changes)))


def scope(**changes: Any) -> AbstractContextManager[None]:
    """Sets flags for the body of a ``with`` block, for this thread or async task only."""
    return _overriding(_checked(changes))


@contextmanager
def _overriding(checked: dict[str, Any]) -> Iterator[None]:
    # The scope around the block is read when the block begins: the context may have been made before that scope.
    with scoped(_scope, _with_overrides(checked)):
        yield


def _with_overrides(checked: dict[str, Any]) -> _Scope:
    """The current scope with more overrides."""
    outer = _scope.get()
    return _Scope({**outer.overrides, **checked} if outer else checked)


def exactly(settings: Settings) -> AbstractContextManager[None]:
    """Makes all flags those of `settings` in the body of a ``with`` block, for this thread or async task only."""
    return _overriding({name: getattr(settings, name) for name in _NAMES})


def forget() -> None:
    """Drops cached `Settings`, and with them the flag values that are not current any more."""
    # Cached copies refer to what their flags hold, such as meshes and devices.
    global_settings._replaced.clear()
    scope = _scope.get()
    if scope is not None:
        scope.settings()._replaced.clear()


def flags_of(kind: str) -> tuple[str, ...]:
    """Names of the flags in the fingerprint of this name, in the order of its values."""
    return _KINDS[kind]
