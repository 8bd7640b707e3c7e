"""`phlox.config`, and context managers for its flags."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from .._base import config as settings
from .._base.errors import ArgumentError, ConfigError, LateFlagError
from .._xla import devices


class Config:
    """The configuration: flags with a value for the process, which may be overridden for a block.

    ``config.update("enable_x64", True)`` sets a flag for the process, ``with config.scope(enable_x64=True):`` for a
    block; ``config.enable_x64`` reads it. JAX's names (``jax_enable_x64``) are accepted. Environment variables such as
    ``PHLOX_ENABLE_X64`` set initial values. `flags()` lists all flags.

    >>> with config.scope(enable_x64=True):
    ...     config.enable_x64
    True
    """

    def config_with_absl(self) -> None:
        """Defines all flags as flags of absl: ``app.run(main)`` then follows ``--jax_enable_x64`` of the command line.

        Raises:
          ModuleNotFoundError: absl-py is not installed.

        >>> phlox.config.config_with_absl()  # doctest: +SKIP
        >>> absl.app.run(main)  # doctest: +SKIP
        """
        from . import absl_flags

        absl_flags.define(self.update)

    def parse_flags_with_absl(self) -> None:
        """Follows flags such as ``--jax_enable_x64`` of the command line at once, for programs without ``app.run``.

        Raises:
          ModuleNotFoundError: absl-py is not installed.

        >>> phlox.config.parse_flags_with_absl()  # doctest: +SKIP
        """
        from . import absl_flags

        absl_flags.parse(self.update)

    def update(self, name: str, value: Any) -> None:
        """Sets a flag for the process.

        Args:
          name: the flag, with or without ``jax_`` in front.
          value: its value.

        Raises:
          ConfigError: there is no such flag, or it does not take this value.
          LateFlagError: the flag counts when devices are started, and they are in use already.

        >>> config.update("enable_x64", False)
        """
        short = settings.short_name(name)
        # These are read once, when the first client starts; a later change would be ignored without a word.
        late = short in ("num_cpu_devices", "platforms", "cpu_enable_async_dispatch") and devices.started()
        if late and not name.endswith("platform_name"):  # by that name jax takes it at any time
            raise LateFlagError(
                f"{name} config should be updated before backends are initialized, that is before the first device is "
                "used",
                instead=f"phlox.config.update({short!r}, ...) at the start, or the variable PHLOX_{short.upper()}",
            )
        settings.update(name, value)

    def scope(self, **changes: Any) -> AbstractContextManager[None]:
        """Sets flags for the body of a ``with`` statement, in this thread only.

        Args:
          **changes: values by names of flags, with or without ``jax_`` in front.

        Returns:
          A context manager.

        Raises:
          ConfigError: there is no such flag, or it does not take this value.

        >>> with config.scope(enable_x64=True):
        ...     config.enable_x64
        True
        """
        return settings.scope(**changes)

    def read(self, name: str) -> Any:
        """The value of a flag in this context.

        Args:
          name: the flag, with or without ``jax_`` in front.

        Returns:
          Its value.

        Raises:
          ConfigError: there is no such flag.

        >>> config.read("enable_x64")
        False
        """
        return settings.read(name)

    def flags(self) -> dict[str, str]:
        """All flags and what they do."""
        return {name: flag.doc for name, flag in settings.FLAGS.items()}

    @property
    def values(self) -> dict[str, Any]:
        """The values of all flags, and of JAX's options without effect, by JAX's names (``jax_enable_x64``)."""
        from .._base.inert_flags import DEFAULTS

        flags = {f"jax_{name}": settings.read(name) for name in settings.FLAGS if name != "inert"}
        return {**flags, **{name: settings.read(name) for name in DEFAULTS}}

    def __getattr__(self, name: str) -> Any:
        # Tools ask for names such as ``__wrapped__``, which are no flags.
        if name.startswith("__"):
            raise AttributeError(name)
        return settings.read(name)

    def __setattr__(self, name: str, value: Any) -> None:
        # The attribute would hide the flag, which would stay as it is.
        raise ConfigError(
            f"config.{name} = {value!r}: flags are no attributes", instead=f"config.update({name!r}, ...)"
        )

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={settings.read(name)!r}" for name in settings.FLAGS)
        return f"Config({values})"


config = Config()


#: the default of `new_val`
_SWITCH_ON: Any = object()


class State:
    """The context manager of one flag, as in JAX: ``with phlox.debug_nans(True): …`` sets it, `value` reads it.

    Without a value, a flag of type bool is set to True: ``with phlox.debug_nans(): …``.
    """

    def __init__(self, flag: str, values: str = "True or False", example: str = ""):
        self.flag = flag
        self.__name__ = self.__qualname__ = flag
        # Docstrings are made from the table of flags, so that they agree with it.
        default, about = settings.describe(flag)
        missing = "" if isinstance(default, bool) else "  ArgumentError: `new_val` is not given.\n"
        implied = "True if it is not given. " if values == "True or False" else ""
        shown = inspect.cleandoc(example) or f">>> with phlox.{flag}({default!r}):\n...     pass\n"
        self.__doc__ = (
            f"Inside of a ``with`` block: {about}\n\nArgs:\n  new_val: {values}. {implied}The flag is {default!r} "
            f"until it is set.\n\nReturns:\n  A context manager, whose block has the flag set in this thread alone.\n\n"
            f"Raises:\n{missing}  ConfigError: the flag does not take this value.\n\n{shown}"
        )

    @property
    def value(self) -> Any:
        """The value in this context."""
        return settings.read(self.flag)

    def __call__(self, new_val: Any = _SWITCH_ON) -> AbstractContextManager[None]:
        # A private default, because None is a value of some flags.
        if new_val is _SWITCH_ON:
            if not isinstance(settings.describe(self.flag)[0], bool):
                raise ArgumentError(f"{self.flag} is no switch, so it needs a value", instead=f"{self.flag}(value)")
            new_val = True
        return settings.scope(**{self.flag: new_val})

    def __repr__(self) -> str:
        return f"State({self.flag}={self.value!r})"


_GUARD = "'allow', 'log', 'disallow', 'log_explicit' or 'disallow_explicit' (see `transfer_guard`), or None for 'allow'"

enable_x64 = State(
    "enable_x64",
    example=""">>> with phlox.enable_x64(True):
    ...     jnp.ones(1).dtype
    dtype('float64')
    """,
)
default_device = State(
    "default_device", "a `Device`, the name of a platform such as 'cpu', or None for the first device there is"
)
default_matmul_precision = State(
    "default_matmul_precision",
    "'default', 'high', 'highest', 'bfloat16', 'tensorfloat32', 'float32', or None for 'default';\n"
    "    or the name of a `phlox.lax.DotAlgorithmPreset`",
)
numpy_dtype_promotion = State("numpy_dtype_promotion", "'standard' or 'strict'")
numpy_rank_promotion = State("numpy_rank_promotion", "'allow', 'warn' or 'raise'")

debug_nans = State(
    "debug_nans",
    example=""">>> with phlox.debug_nans(True):
    ...     phlox.jit(lambda x: jnp.log(x - 1) * 2)(0.0)
    Traceback (most recent call last):
    InvalidValueError: invalid value (nan) encountered in log: a:f32[] = log b, in <lambda>
    """,
)
debug_infs = State("debug_infs")
checks = State(
    "checks",
    "'default' warns of traps, once for each line; 'strict' raises; 'off' looks for none",
    example=""">>> with phlox.checks("strict"):
    ...     jnp.arange(3)[5]
    Traceback (most recent call last):
    CheckError: index 5 is out of bounds for axis 0 with size 3 of an array of shape (3,)...
    """,
)
check_tracer_leaks = State("check_tracer_leaks")
enable_checks = State("enable_checks")
log_compiles = State("log_compiles")
explain_cache_misses = State("explain_cache_misses")
no_tracing = State("no_tracing")
no_execution = State("no_execution")
transfer_guard_host_to_device = State("transfer_guard_host_to_device", _GUARD)
transfer_guard_device_to_device = State("transfer_guard_device_to_device", _GUARD)
transfer_guard_device_to_host = State("transfer_guard_device_to_host", _GUARD)
allow_f16_reductions = State("allow_f16_reductions")
legacy_prng_key = State("legacy_prng_key", "'allow', 'warn' or 'error'")
enable_custom_prng = State("enable_custom_prng")
default_prng_impl = State(
    "default_prng_impl",
    "'threefry2x32', 'threefry4x32', 'rbg', 'unsafe_rbg', 'philox2x32' or 'philox4x32'",
)
threefry_partitionable = State(
    "threefry_partitionable",
    example=""">>> with phlox.threefry_partitionable(False):
    ...     phlox.random.key_data(phlox.random.split(phlox.random.key(0)))
    Array([[4146024105,  967050713],
           [2718843009, 1272950319]], dtype=uint32)
    """,
)
debug_key_reuse = State(
    "debug_key_reuse",
    example=""">>> with phlox.debug_key_reuse(True):
    ...     key = phlox.random.key(0)
    ...     phlox.random.normal(key) + phlox.random.normal(key)
    Traceback (most recent call last):
    KeyReuseError: Previously-consumed key passed to jit-compiled function at index 0: normal draws from a key<fry>[]...
    """,
)
softmax_custom_jvp = State("softmax_custom_jvp")
auto_pcast = State("auto_pcast")
remove_size_one_mesh_axis_from_type = State("remove_size_one_mesh_axis_from_type")
jax2tf_associative_scan_reductions = State("jax2tf_associative_scan_reductions")
thread_guard = State("thread_guard")
array_garbage_collection_guard = State("array_garbage_collection_guard", "a word, or None")


def disable_jit(disable: bool = True) -> AbstractContextManager[None]:
    """Runs jitted functions operation by operation inside of a ``with`` block, so that prints and debuggers see values.

    Loops and branches of `phlox.lax` are run by Python then, as far as their conditions are known.

    Args:
      disable: False turns compilation on again, inside of a block that has turned it off.

    Returns:
      A context manager that sets the flag for its block, in this thread only.

    >>> with disable_jit():
    ...     pass
    """
    return settings.scope(disable_jit=disable)


def checking_leaks() -> AbstractContextManager[None]:
    """Checks in a ``with`` block that no tracer outlives its transformation; the same as `check_tracer_leaks(True)`.

    Returns:
      A context manager. `LeakedTracerError` is raised when a transformation inside of its block ends while one of its
      tracers is still referenced.

    >>> kept = []
    >>> with checking_leaks():
    ...     phlox.jit(lambda x: kept.append(x))(1.0)
    Traceback (most recent call last):
    LeakedTracerError: Leaked traced values of <lambda>, which has ended: ...
    """
    return settings.scope(check_tracer_leaks=True)


def transfer_guard(new_val: str) -> AbstractContextManager[None]:
    """Allows, logs or refuses transfers between host and devices, and between devices, inside of a ``with`` block.

    Explicit transfers are those by `device_put` and `device_get`. Arrays in host memory, such as all arrays on CPU,
    are read without a transfer.

    Args:
      new_val: 'allow'; 'log' or 'disallow' for implicit transfers; 'log_explicit' or 'disallow_explicit' for explicit
        ones too; None for 'allow'.

    Returns:
      A context manager that sets all three directions for its block, in this thread only. A transfer that is not
      allowed raises `TransferError`.

    Raises:
      ConfigError: `new_val` is another value.

    >>> with transfer_guard("disallow"):
    ...     jnp.sin(np.ones(2, np.float32))
    Traceback (most recent call last):
    TransferError: disallowed implicit host-to-device transfer of f32[2] ...
    """
    return settings.scope(transfer_guard=new_val)


class UserContext:
    """A user's value that is part of the cache keys of jitted functions; made by `make_user_context`."""

    def __init__(self, default: Any):
        self.default = default
        self._process = default

    @property
    def value(self) -> Any:
        """The value in this context."""
        # Contexts are hashed by identity, so they can be keys among the values.
        return dict(settings.read("user_contexts")).get(self, self._process)

    def get_global(self) -> Any:
        """The value outside of blocks."""
        return self._process

    def set_global(self, new_value: Any) -> None:
        """Sets the value outside of blocks."""
        self._process = new_value
        outside = {**dict(settings.global_settings.user_contexts), self: new_value}
        settings.update("user_contexts", tuple(outside.items()))

    @contextmanager
    def __call__(self, new_value: Any) -> Iterator[None]:
        values = {**dict(settings.read("user_contexts")), self: new_value}
        with settings.scope(user_contexts=tuple(values.items())):
            yield


def make_user_context(default_value: Any = None) -> UserContext:
    """A context value of your own, for which jitted functions are traced and compiled separately.

    The value must be hashable. It is set by ``with context(value):`` and read as ``context.value``.

    Args:
      default_value: the value where none is set.

    Returns:
      A `UserContext`. Its method ``set_global(value)`` sets the value outside of blocks.

    >>> scale = make_user_context(1.0)
    >>> f = phlox.jit(lambda x: x * scale.value)
    >>> with scale(3.0):
    ...     f(2.0)
    Array(6., dtype=float32, weak_type=True)
    >>> f(2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    return UserContext(default_value)
