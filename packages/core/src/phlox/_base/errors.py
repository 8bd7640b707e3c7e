"""All error classes of phlox. A message has three parts: what happened, where, and what to write instead.

    PhloxError
    ├── ArgumentError (TypeError, ValueError)  an argument that cannot be an array
    │   ├── ObservationsError (RuntimeError)   the number of weights is not the number of observations
    │   └── SparseEfficiencyError              an operation on sparse arrays would cost as much as on dense ones
    ├── ForeignArrayError (ValueError)         jax itself got an array of phlox
    ├── OptionError (ValueError)               an option does not accept this value
    │   └── PaddingError (RuntimeError)        an unknown name of a padding
    ├── ConfigError (AttributeError, ValueError) a flag does not exist, or does not accept this value
    │   └── LateFlagError (RuntimeError)       a flag was set after the devices were in use
    ├── CompilationError (JaxRuntimeError)     XLA could not compile a program
    │   └── CompilerOptionError (ValueError)   … because of an unknown compiler option
    ├── OutOfMemoryError (JaxRuntimeError, MemoryError) a device has no memory for an array or a program
    ├── ExportError (ValueError)               a function that cannot be exported or loaded
    ├── UnsupportedError (NotImplementedError, ValueError) an option that NumPy has and phlox does not
    ├── ShapeError (TypeError, ValueError)     shapes that do not fit
    │   └── AxisError (IndexError)             an axis that the array does not have
    ├── ShardingTypeError (TypeError)          operands whose types leave open how the result is sharded
    │   └── ShardingAssertionError (AssertionError) an array is not sharded as `with_sharding_constraint` says
    ├── DtypeError (TypeError, ValueError)     unknown or unsuitable element types
    │   └── TypePromotionError                 no implicit promotion between these element types
    ├── NumberRangeError (OverflowError)       a Python integer that an element type cannot hold
    ├── TreeError (TypeError, ValueError)      pytrees whose structures differ
    │   └── FunctionTreeError                  … of arguments or results of a function
    ├── AxisSizeError (ValueError)             mapped axes of unequal size
    ├── AxisNameError (NameError)              a collective names an axis that is not mapped
    ├── BackendError (RuntimeError)            a platform that is not there, or does not start
    ├── DeviceError (RuntimeError, ValueError) a device does not exist, or there are too few
    ├── DistributedError (RuntimeError)        the processes of a distributed program do not find each other
    │   └── ProcessFailureError                other processes failed while this one worked with their devices
    ├── DeletedArrayError (JaxRuntimeError)    an array whose buffer was donated or deleted
    ├── DerivativeError (TypeError, ValueError) a derivative of something that has none
    ├── MissingRuleError (NotImplementedError) a primitive or a custom function has no rule for this
    │   └── UndefinedRuleError (AttributeError) … because the custom function never got its rule
    ├── StaticArgumentError (ValueError)       static arguments that cannot be used as cache key
    ├── CallbackError (JaxRuntimeError)        a callback's results do not have the declared types
    ├── EffectError (ValueError, NotImplementedError) an effect where it, or its order, is not possible
    ├── JAXTypeError (TypeError)               an invalid use of traced values or PRNG keys
    │   ├── UnexpectedTracerError              a traced value outlived its trace
    │   ├── ConcretizationTypeError            Python code needs the value of a traced array
    │   │   ├── TracerBoolConversionError
    │   │   ├── TracerIntegerConversionError
    │   │   └── TracerArrayConversionError
    │   └── KeyReuseError (RuntimeError)
    ├── JAXIndexError (IndexError)
    │   └── NonConcreteBooleanIndexError
    ├── InvalidValueError (FloatingPointError) a nan or an infinity, with the flags debug_nans and debug_infs
    ├── LeakedTracerError                      a traced value outlived its trace, with check_tracer_leaks
    ├── TransferError (JaxRuntimeError)        a transfer between host and devices that transfer_guard forbids
    ├── RefusedError (RuntimeError)            a call that a flag forbids, a second profile, record in a trace
    ├── IndexingError (IndexError, TypeError)   an invalid index
    │   └── IndexTypeError                     … of a dtype or class that no index has
    ├── RefError (ValueError)                  an invalid use of a reference
    ├── UncheckedError (ValueError)            a `check` in a compiled program without `checkify`
    ├── MissingNameError (AttributeError, NotImplementedError) a library uses a name of jax that phlox lacks
    ├── MissingImportError (ModuleNotFoundError) … in an import statement
    ├── UnknownNameError (AttributeError)      a public module has no such name
    ├── AdoptionError (ImportError)            jax or a library cannot be stood for in this process
    ├── JaxprTypeError (TypeError)             a Jaxpr that is not well-typed
    ├── InconclusiveDimensionOperation         a question about symbolic lengths without a single answer
    ├── CheckError                             a trap, in strict mode of `config.checks`
    └── SizesError (NotImplementedError)       an operation that `pad_axes` cannot compute from padded arrays

Errors that exist in JAX have JAX's names. All classes are public, in `phlox.errors`. They derive from the built-in
classes that JAX or NumPy raise, so that existing handlers such as `except TypeError` work. The data of an error are
attributes, so that no program needs to parse messages.
"""

from __future__ import annotations

import sys
from typing import Any

from . import source
from .native import native

__all__ = [
    "ArgumentError",
    "AxisError",
    "AxisNameError",
    "AxisSizeError",
    "BackendError",
    "CallbackError",
    "CheckError",
    "CheckRuntimeWarning",
    "CheckWarning",
    "CompilationError",
    "CompilerOptionError",
    "ConcretizationTypeError",
    "ConfigError",
    "DeletedArrayError",
    "DerivativeError",
    "DeviceError",
    "DistributedError",
    "DtypeError",
    "EffectError",
    "ExportError",
    "FunctionTreeError",
    "InconclusiveDimensionOperation",
    "IndexTypeError",
    "IndexingError",
    "InvalidValueError",
    "JAXIndexError",
    "JAXTypeError",
    "JaxprTypeError",
    "KeyReuseError",
    "LateFlagError",
    "LeakedTracerError",
    "MissingRuleError",
    "NonConcreteBooleanIndexError",
    "NumberRangeError",
    "ObservationsError",
    "OptionError",
    "OutOfMemoryError",
    "PaddingError",
    "PhloxError",
    "ProcessFailureError",
    "RefError",
    "RefusedError",
    "ShapeError",
    "ShardingAssertionError",
    "ShardingTypeError",
    "SizesError",
    "SizesWarning",
    "SparseEfficiencyError",
    "StaticArgumentError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "TransferError",
    "TreeError",
    "TypePromotionError",
    "UncheckedError",
    "UndefinedRuleError",
    "UnexpectedTracerError",
    "UnsupportedError",
]


class PhloxError(Exception):
    """Base of all errors that phlox raises about a program.

    Attributes:
      what: what happened, in the user's terms (argument names, tree paths, types like ``f32[3,4]``).
      where: the `Location` of the user's own line, or None.
      instead: what to write instead, or an empty string.

    Further keyword arguments become attributes, for example ``error.path`` or ``error.shapes``.
    """

    def __init__(self, what: str, *, instead: str = "", where: source.Location | None = None, **data: Any):
        super().__init__(what)
        self.what = what
        self.instead = instead
        # Frame 0 is `user_location`, 1 this constructor, 2 the code that raises.
        self.where = where if where is not None else source.user_location(2)
        # Data are attributes, so that handlers need not parse the message.
        for name, value in data.items():
            setattr(self, name, value)
        handled = sys.exc_info()[1]
        # Only if phlox raised and caught that exception: a user's exception is shown as the context.
        if handled is not None and source.is_inside(handled.__traceback__):
            # Python would show phlox's own KeyError of a cache as the cause.
            self.__suppress_context__ = True

    def __str__(self) -> str:
        lines = [self.what]
        if self.where is not None:
            text = self.where.text()
            lines.append(f"  at {self.where}" + (f":  {text}" if text else ""))
        if self.instead:
            lines.append(f"  instead: {self.instead}")
        return "\n".join(lines)


class ArgumentError(PhloxError, TypeError, ValueError):
    """An argument cannot be converted to an array.

    Cause: for example a function or a string passed to a jitted function.
    Fix: mark it static, or pass numbers and arrays.

    >>> phlox.jit(lambda x, f: f(x))(1.0, abs)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    ArgumentError: ...
    """


class SparseEfficiencyError(ArgumentError):
    """An operation on sparse arrays would cost as much as on dense ones, and `on_inefficient` is "error".

    Fix: another layout of batch and dense axes, or ``on_inefficient=None``.
    """


class OptionError(PhloxError, ValueError):
    """An option does not accept its value, or options exclude each other. The message lists the accepted values."""


class PaddingError(OptionError, RuntimeError):
    """An unknown name of a padding. Fix: ``'VALID'``, ``'SAME'`` or ``'SAME_LOWER'``."""


class ConfigError(PhloxError, AttributeError, ValueError):
    """A flag does not exist, or does not accept the value."""


class LateFlagError(ConfigError, RuntimeError):
    """A flag about devices was set after devices were in use. Fix: set it at the start of the program."""


class ObservationsError(ArgumentError, RuntimeError):
    """The number of weights is not the number of observations. It is a `RuntimeError` too, as in NumPy."""


class CompilationError(PhloxError, native.JaxRuntimeError):  # type: ignore[misc]
    """XLA could not compile a program. Attribute `text` is its StableHLO text.

    Cause: most often a foreign function that is not registered for the platform; otherwise probably a bug in phlox.
    """


class CompilerOptionError(OptionError, CompilationError):
    """XLA does not know an option in `compiler_options`, or does not accept its value.

    Attribute `options` holds all given options. Fix: use the names of XLA's flags, without ``--``.
    """


class OutOfMemoryError(PhloxError, native.JaxRuntimeError, MemoryError):  # type: ignore[misc]
    """A device has no memory for an array or for a program. The message names the largest live arrays.

    Attributes:
      requested: the number of bytes that were asked for, or None.
      program: name and sizes of the program that asked, in bytes, or None.
      largest: the live arrays by size and origin, the largest first: see `phlox.debug.live_memory`.

    Example: ``jnp.zeros((1 << 22, 1 << 22))``. Fix: smaller parts, donated arguments, or ``del`` of arrays.
    """

    requested: Any
    program: Any
    largest: Any


class ExportError(PhloxError, ValueError):
    """A function cannot be exported, or an exported function cannot be loaded or differentiated."""


class InconclusiveDimensionOperation(PhloxError):
    """The program needs the value of a symbolic dimension, or a comparison that is true for only some of its values.

    Fix: use shapes of numbers.
    """


class SizesError(PhloxError, NotImplementedError):
    """`pad_axes` cannot compute an operation from padded arrays. The message names it and the line that calls it.

    Fix: none is needed. The function is compiled for the size of its arguments, as `jit` does.
    """


class SizesWarning(UserWarning):
    """A function with `pad_axes` is compiled for the size of its arguments, because an operation cannot be padded."""


class CheckError(PhloxError):
    """A check of `phlox.config.checks` failed in strict mode. The message is that of the `CheckWarning`.

    Attributes: `check`, the name of the check, as "recompiles" or "stale values".
    Fix: what the message says, or ``phlox.config.update("checks", "default")`` to be warned only.
    """


class CheckWarning(UserWarning):
    """A check of `phlox.config.checks` found a trap: the message says what happens and what to write instead."""


class CheckRuntimeWarning(CheckWarning, RuntimeWarning):
    """A `CheckWarning` of a trap that jax warns of, too, by a `RuntimeWarning`."""


class UnsupportedError(PhloxError, NotImplementedError, ValueError):
    """An option that NumPy or JAX has and phlox does not have. The message says what to write instead."""


class ShapeError(PhloxError, TypeError, ValueError):
    """The shapes of arguments do not fit each other or the operation.

    Fix: reshape, or add axes with ``x[:, None]`` so that NumPy's broadcasting rules apply.
    """


class ShardingTypeError(PhloxError, TypeError, ValueError):
    """The shardings in the types of operands do not fit each other, or leave open how the result is sharded.

    Only arrays over a mesh with explicit axes have such types, as ``f32[8@x,4@y]``. Attributes: `avals`, the types of
    the operands.
    Cause: ``x @ y`` where the axis that is summed up is split; ``x + y`` with one axis split over two mesh axes.
    Fix: ``out_sharding=phlox.P(...)`` where the function has it; or `phlox.reshard` of an operand first; or
    `phlox.sharding.auto_axes` around the function, which leaves the choice to the compiler.
    """


class ShardingAssertionError(ShardingTypeError, AssertionError):
    """An array over explicit axes is not sharded as `with_sharding_constraint` says, which is an assertion there.

    Fix: `phlox.reshard`, which changes the sharding.
    """


class AxisError(ShapeError, IndexError):
    """An axis does not exist: its number is not in -ndim … ndim - 1."""


class DtypeError(PhloxError, TypeError, ValueError):
    """An element type is unknown, or the operation does not accept it.

    Fix: convert first, for example ``x.astype(phlox.numpy.float32)``.
    """


class TypePromotionError(DtypeError):
    """Two element types have no common type under the current promotion rules.

    Fix: convert one of them explicitly.

    >>> with phlox.numpy_dtype_promotion("strict"):
    ...     jnp.ones(2, "float32") + jnp.ones(2, "int32")
    Traceback (most recent call last):
    phlox.errors.TypePromotionError: Input dtypes ('float32', 'int32') have no available implicit dtype...
    """


class NumberRangeError(PhloxError, OverflowError):
    """A Python number is out of the range of an element type. Attributes: value, dtype."""


class TreeError(PhloxError, TypeError, ValueError):
    """Two pytrees that must have the same structure differ.

    Attributes `path`, `expected` and `got` describe the first difference, `differences` all of them.
    """


class FunctionTreeError(TreeError):
    """A function got or returned a pytree of another structure than it must."""


class AxisSizeError(PhloxError, ValueError):
    """Axes that are mapped together have different sizes, or a mapped axis does not exist.

    Attribute `sizes` holds one (argument path, axis, type) for each mapped array.
    """


class AxisNameError(PhloxError, NameError):
    """A collective such as ``psum(x, 'i')`` names an axis that no enclosing vmap, pmap or shard_map maps."""


class BackendError(PhloxError, RuntimeError):
    """A platform such as ``"gpu"`` is not there, or its plugin does not start. Attribute: `backend`."""


class DeviceError(PhloxError, RuntimeError, ValueError):
    """A device does not exist, or there are fewer devices than the program needs."""


class DistributedError(PhloxError, RuntimeError):
    """The processes of a distributed program do not find each other, or one has failed.

    Attributes: `address` of process 0, `process_id`, `num_processes`, as far as they matter.
    Cause: a wrong address, a process that was not started, two with the same number, different numbers of processes.
    Example: ``phlox.distributed.initialize("10.0.0.1:1234", 2, 1)`` while nothing listens at that address.
    Fix: what the message names; docs/guides/processes.md shows how to start processes.
    """


class ProcessFailureError(DistributedError):
    """Other processes failed inside of ``live_devices``. Attribute `failed_devices` is the set of their devices.

    Fix: go on with the devices of the next ``live_devices``, from the state that was saved last.
    """

    failed_devices: Any


class DeletedArrayError(PhloxError, native.JaxRuntimeError):  # type: ignore[misc]
    """An array was used after its buffer was donated to a computation or deleted.

    Fix: use the result of the computation to which the buffer was donated, or do not donate it.
    """


class DerivativeError(PhloxError, TypeError, ValueError):
    """A derivative was requested that does not exist: with respect to integers, or `grad` of an output with axes."""


class MissingRuleError(PhloxError, NotImplementedError):
    """A primitive has no rule for a transformation.

    Attributes: `primitive` (or `function`) and `rule`, the name of the rule. See `phlox.extend` for how to add a rule.
    """


class UndefinedRuleError(MissingRuleError, AttributeError):
    """A function decorated with `custom_jvp`, `custom_vjp` or `custom_vmap` was called before its rule was set.

    Fix: call `defjvp`, `defvjp` or `def_vmap` first. Attributes: function, rule.
    """


class StaticArgumentError(PhloxError, ValueError):
    """A static argument cannot be part of a cache key because it is not hashable.

    Fix: pass a tuple instead of a list, or a frozen dataclass instead of a dict.
    """


class CallbackError(PhloxError, native.JaxRuntimeError):  # type: ignore[misc]
    """A Python callback returned values of other types than declared. Attributes: expected, got."""


class EffectError(PhloxError, ValueError, NotImplementedError):
    """A transformation cannot preserve an effect, such as an ordered effect under vmap. Attributes: effects."""


class JAXTypeError(PhloxError, TypeError):
    """Base class of JAX's subclasses of `TypeError`: an invalid use of a traced value or a PRNG key."""


class JAXIndexError(PhloxError, IndexError):
    """Base class of JAX's subclasses of `IndexError`."""


class JaxprTypeError(PhloxError, TypeError):
    """A Jaxpr is not well-formed or not well-typed. This can happen to Jaxprs that were built by hand."""


class UnexpectedTracerError(JAXTypeError):
    """A traced value was used after the transformation that made it had ended.

    Cause: the function stored it somewhere (a global, an attribute, a list) instead of returning it.
    Fix: return it.
    """


class ConcretizationTypeError(JAXTypeError):
    """Python code needs the value of an array that is known only when the program runs.

    Fix: mark the argument static, or use functions such as ``phlox.numpy.where``.
    """


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced array was used where Python needs True or False, as in ``if x > 0:``.

    Fix: ``phlox.numpy.where(x > 0, a, b)`` or ``phlox.lax.cond``; or mark the argument static.
    """


class TracerIntegerConversionError(ConcretizationTypeError):
    """A traced array was used where Python needs an integer, as in ``range(x)`` or a list index.

    Fix: mark the argument static, or index an array instead of a list.
    """


class TracerArrayConversionError(ConcretizationTypeError):
    """A traced array was passed to NumPy, which needs its elements.

    Fix: use `phlox.numpy` in place of `numpy` inside transformed functions.
    """


class IndexingError(PhloxError, IndexError, TypeError):
    """An index of an invalid kind, or one that does not fit the array."""


class IndexTypeError(IndexingError):
    """An index, or a bound of a slice, of a dtype or class that no index has, such as a float or a string."""


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced boolean mask was used as an index: the shape of the result would depend on its values.

    Fix: ``phlox.numpy.where(mask, x, fill)``, or functions with an argument ``size``.
    """


class InvalidValueError(PhloxError, FloatingPointError):
    """A result contains a nan (or an infinity) while the flag `debug_nans` (or `debug_infs`) is on.

    Attributes:
      value: "nan" or "inf".
      primitive: name of the first operation with such a result.
      equation: its equation as text.
      path: names of the Jaxprs that contain the equation, outermost first, with the iterations of loops.
      where: the user's line.
      program: the Jaxpr that was run, and its arguments.

    `primitive`, `equation` and `path` are None if running the operations one by one gave no such value. That can happen
    with operations that the compiler fuses.
    """

    program: tuple[Any, list[Any]]


class LeakedTracerError(PhloxError):
    """A traced value is still alive after its transformation has ended, while the flag `check_tracer_leaks` is on.

    Fix: return the value from the function; do not store it in a global, a list or self.
    Attribute `holders` lists, for each leaked value, what refers to it.
    """


class TransferError(PhloxError, native.JaxRuntimeError):  # type: ignore[misc]
    """A transfer between host and devices, or between devices, is forbidden by the flags `transfer_guard_*`.

    Fix: make the transfer explicit, with ``device_put`` or ``device_get``.
    """


class RefusedError(PhloxError, RuntimeError):
    """A function was traced while the flag `no_tracing` is on, or a program was run while `no_execution` is on.

    Also what is not possible at this time: a second profile while one is recorded, a recording inside of a traced
    function.
    """


class RefError(PhloxError, ValueError):
    """An invalid use of a reference (`phlox.Ref`): it is returned, passed twice, or indexed out of bounds."""


class UncheckedError(PhloxError, ValueError):
    """A compiled program contains a `check` that `checkify` has not turned into a result."""


class KeyReuseError(JAXTypeError, RuntimeError):
    """A PRNG key was used twice, while the flag `debug_key_reuse` is set.

    Cause: random numbers from the same key are the same, or are correlated.
    Example: ``phlox.random.normal(key) + phlox.random.uniform(key)``.
    Fix: ``key, subkey = phlox.random.split(key)`` for each use; ``phlox.random.clone(key)`` for the same numbers again.
    """


# Tracebacks and pickles then show the public module.
for _name in __all__:
    globals()[_name].__module__ = "phlox.errors"
