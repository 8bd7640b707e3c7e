"""Every error class of phlox, in one tree. A message has three parts: what, where, and what to write instead.

    PhloxError
    ├── ArgumentError (TypeError, ValueError)  an argument that cannot be an array
    │   └── ObservationsError (RuntimeError)   weights that are not one for each observation
    ├── OptionError (ValueError)               an option with a value that it does not take
    │   └── PaddingError (RuntimeError)        a word that names no padding
    ├── ConfigError (AttributeError, ValueError) a flag that does not exist, or does not take this value
    │   └── LateFlagError (RuntimeError)       a flag that is set after the devices are in use
    ├── CompilationError (JaxRuntimeError)     XLA could not compile a program
    │   └── CompilerOptionError (ValueError)   … because of an option that it does not know
    ├── ExportError (ValueError)               a function that cannot be exported, or not be read again
    ├── UnsupportedError (NotImplementedError) an option that NumPy has and phlox does not
    ├── ShapeError (TypeError, ValueError)     shapes that do not fit
    │   └── AxisError (IndexError)             an axis that the array does not have
    ├── DtypeError (TypeError, ValueError)     unknown or unfit element types
    │   └── TypePromotionError                 no implicit promotion between these
    ├── NumberRangeError (OverflowError)       a Python integer that an element type cannot hold
    ├── TreeError (TypeError, ValueError)      pytrees whose structures differ
    ├── AxisSizeError (ValueError)             mapped axes of unequal size
    ├── AxisNameError (NameError)              a collective names an axis that is not mapped
    ├── DeviceError (RuntimeError, ValueError) a device or backend that is not there, or too few
    ├── DeletedArrayError (RuntimeError)       an array whose buffer was donated or deleted
    ├── DerivativeError (TypeError, ValueError) grad and friends asked of something without derivative
    ├── MissingRuleError (NotImplementedError) a primitive or a custom function has no rule for this
    │   └── UndefinedRuleError (AttributeError) … which its maker never stated
    ├── StaticArgumentError (ValueError)       static arguments that cannot be used as cache key
    ├── CallbackError (RuntimeError)           a callback's results are not what it promised
    ├── EffectError (ValueError, NotImplementedError) an effect where it cannot happen, or not in order
    ├── JAXTypeError (TypeError)               values that are traced, or keys, used as they cannot be
    │   ├── UnexpectedTracerError              a traced value outlived its trace
    │   ├── ConcretizationTypeError            Python asked for the value of a traced array
    │   │   ├── TracerBoolConversionError
    │   │   ├── TracerIntegerConversionError
    │   │   └── TracerArrayConversionError
    │   └── KeyReuseError (RuntimeError)
    ├── JAXIndexError (IndexError)
    │   └── NonConcreteBooleanIndexError
    ├── InvalidValueError (FloatingPointError) a nan or an infinity, with the flags debug_nans and debug_infs
    ├── LeakedTracerError                      a traced value outlived its trace, with check_tracer_leaks
    ├── TransferError (RuntimeError)           a transfer between host and devices that transfer_guard forbids
    ├── RefusedError (RuntimeError)            tracing or running with no_tracing, no_execution
    ├── IndexingError (IndexError, TypeError)   an index that arrays do not understand
    ├── RefError (ValueError)                  a reference used as it cannot be
    │   └── CapturedRefsError                  … from outside of the function that uses it
    ├── UncheckedError (ValueError)            a `check` in a program that cannot raise
    ├── JaxprTypeError (TypeError)             a program whose types do not fit
    └── InconclusiveDimensionOperation         a question about symbolic lengths that has no one answer

Names that JAX has are JAX's. All of them are public, in `phlox.errors`. Classes derive from the built-in class that
JAX or NumPy would raise, so that `except TypeError` written for them keeps working. Data sits in attributes: nobody
needs to parse a message.
"""

from __future__ import annotations

from typing import Any

from . import source
from .native import native

__all__ = [
    "ArgumentError",
    "AxisError",
    "AxisNameError",
    "AxisSizeError",
    "CallbackError",
    "CapturedRefsError",
    "CompilationError",
    "CompilerOptionError",
    "ConcretizationTypeError",
    "ConfigError",
    "DeletedArrayError",
    "DerivativeError",
    "DeviceError",
    "DtypeError",
    "EffectError",
    "ExportError",
    "InconclusiveDimensionOperation",
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
    "PaddingError",
    "PhloxError",
    "RefError",
    "RefusedError",
    "ShapeError",
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
        self.where = where if where is not None else source.user_location(2)
        for name, value in data.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        lines = [self.what]
        if self.where is not None:
            text = self.where.text()
            lines.append(f"  at {self.where}" + (f":  {text}" if text else ""))
        if self.instead:
            lines.append(f"  instead: {self.instead}")
        return "\n".join(lines)


class ArgumentError(PhloxError, TypeError, ValueError):
    """An argument is of a kind that cannot become an array.

    Cause: for example a function or a string passed to a jitted function.
    Fix: mark it static, or pass numbers and arrays.

    >>> import phlox
    >>> phlox.jit(lambda x, f: f(x))(1.0, abs)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    ArgumentError: ...
    """


class OptionError(PhloxError, ValueError):
    """An option has a value that it does not take, or options do not go together. The message lists what it takes."""


class PaddingError(OptionError, RuntimeError):
    """A word that names no padding. Fix: ``'VALID'``, ``'SAME'`` or ``'SAME_LOWER'``."""


class ConfigError(PhloxError, AttributeError, ValueError):
    """A flag that does not exist, or a value that it cannot take."""


class LateFlagError(ConfigError, RuntimeError):
    """A flag about devices is set when they are in use already. Fix: set it where the program begins."""


class ObservationsError(ArgumentError, RuntimeError):
    """Weights that are not one for each observation: a `RuntimeError` too, as NumPy has it."""


class CompilationError(PhloxError, native.JaxRuntimeError):  # type: ignore[misc]
    """XLA could not compile a program. Attribute `text` is the program.

    Cause: most often a foreign function that is not registered for the platform; else likely a fault of phlox.
    """


class CompilerOptionError(OptionError, CompilationError):
    """XLA does not know an option of `compiler_options`, or not this value of it.

    Attribute `options` holds those that were given. Fix: the names are those of XLA's flags, without ``--``.
    """


class ExportError(PhloxError, ValueError):
    """A function cannot be exported, or an exported one not be read or differentiated. The message says what to do."""


class InconclusiveDimensionOperation(PhloxError):
    """The value of a symbolic dimension was asked for, or a comparison that holds for some of its values only.

    Fix: shapes of numbers.
    """


class UnsupportedError(PhloxError, NotImplementedError):
    """An option that NumPy or JAX has and phlox does not. The message says what to write for it."""


class ShapeError(PhloxError, TypeError, ValueError):
    """Shapes of arguments do not fit together, or do not fit the operation.

    Fix: reshape, or add axes with ``x[:, None]`` so that NumPy's broadcasting rules apply.
    """


class AxisError(ShapeError, IndexError):
    """An axis is not there: its number is not in -ndim … ndim - 1."""


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
    """A Python integer is larger or smaller than the numbers of its element type. Attributes: value, dtype."""


class TreeError(PhloxError, TypeError, ValueError):
    """Two pytrees that must have the same structure differ.

    Attributes `path`, `expected` and `got` say where and how.
    """


class AxisSizeError(PhloxError, ValueError):
    """Axes that are mapped together have different sizes, or an axis is not there.

    Attribute `sizes` holds one (argument path, axis, type) for each mapped array.
    """


class AxisNameError(PhloxError, NameError):
    """A collective such as ``psum(x, 'i')`` names an axis that no enclosing vmap or pmap maps."""


class DeviceError(PhloxError, RuntimeError, ValueError):
    """A device or backend is not there, or there are fewer devices than the program asks for."""


class DeletedArrayError(PhloxError, RuntimeError):
    """An array was used after its buffer was donated to a computation or deleted.

    Fix: use the result of the computation it was donated to, or do not donate it.
    """


class DerivativeError(PhloxError, TypeError, ValueError):
    """A derivative was asked of something that has none: integer inputs, outputs that are no scalar."""


class MissingRuleError(PhloxError, NotImplementedError):
    """A primitive states no rule for a transformation.

    Attributes `primitive` (or `function`) and `rule` name them. See `phlox.extend` for how to add one.
    """


class UndefinedRuleError(MissingRuleError, AttributeError):
    """A function of `custom_jvp`, `custom_vjp` or `custom_vmap` was called before it got its rule.

    Fix: call `defjvp`, `defvjp` or `def_vmap` first. Attributes: function, rule.
    """


class StaticArgumentError(PhloxError, ValueError):
    """A static argument cannot serve as a cache key because it is not hashable.

    Fix: pass a tuple for a list, or a frozen dataclass for a dict.
    """


class CallbackError(PhloxError, RuntimeError):
    """A Python function that a program calls returned other types than were promised. Attributes: expected, got."""


class EffectError(PhloxError, ValueError, NotImplementedError):
    """An effect that a transformation cannot keep, as an ordered one under vmap. Attributes: effects."""


class JAXTypeError(PhloxError, TypeError):
    """What JAX's own kinds of `TypeError` have in common: a traced value or a key was used as it cannot be."""


class JAXIndexError(PhloxError, IndexError):
    """What JAX's own kinds of `IndexError` have in common."""


class JaxprTypeError(PhloxError, TypeError):
    """A program (Jaxpr) is not well typed. Programs that phlox records are; those that are built by hand may not be."""


class UnexpectedTracerError(JAXTypeError):
    """A traced value was used after the transformation that made it had ended.

    Cause: the function stored it somewhere (a global, an attribute, a list) instead of returning it.
    Fix: return it.
    """


class ConcretizationTypeError(JAXTypeError):
    """Python asked for the concrete value of an array that is only known while the program runs.

    Fix: mark the argument static, or use ``numpy.where`` and the like.
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
    """A traced array was given to NumPy, which needs its values.

    Fix: use `phlox.numpy` in place of `numpy` inside transformed functions.
    """


class IndexingError(PhloxError, IndexError, TypeError):
    """An index that arrays do not understand, or that does not fit the array."""


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced boolean mask was used as an index: the shape of the result would depend on its values.

    Fix: ``phlox.numpy.where(mask, x, fill)``, or functions that take ``size=``.
    """


class InvalidValueError(PhloxError, FloatingPointError):
    """A result has a nan (or an infinity), and `debug_nans` (or `debug_infs`) is on.

    Attributes: `value`, "nan" or "inf"; `primitive`, the name of the first operation that gave one; `equation`, the
    equation of the program it stands in as text; `path`, the programs that it lies in, outermost first, with the turns
    of loops; `where`, the user's line. The first three are None when running the operations one by one gave no such
    value, as may happen with those that the compiler fuses.
    """


class LeakedTracerError(PhloxError):
    """A traced value is still alive after its transformation has ended, and `check_tracer_leaks` is on.

    Fix: return the value from the function; do not store it in a global, a list or self.
    Attribute `holders` says for each leaked value what refers to it.
    """


class TransferError(PhloxError, RuntimeError):
    """A transfer between the host and devices, or between devices, that the flags `transfer_guard_*` forbid.

    Fix: ask for it with ``device_put`` or ``device_get``.
    """


class RefusedError(PhloxError, RuntimeError):
    """Something was traced, or run, while the flag `no_tracing`, or `no_execution`, forbids it."""


class RefError(PhloxError, ValueError):
    """A reference to an array (`phlox.Ref`) is used as it cannot be: returned, passed twice, indexed outside of it."""


class CapturedRefsError(RefError):
    """A function that is traced uses references from outside, and what traces it has no way to pass them in and out.

    Attribute `refs` holds them. Fix: pass the array in and return the new one; or ``freeze(ref)`` around the function.
    """

    refs: Any


class UncheckedError(PhloxError, ValueError):
    """A `check` is in a program that is compiled, and was not turned into a result by `checkify`."""


class KeyReuseError(JAXTypeError, RuntimeError):
    """A PRNG key was used twice. Fix: ``key, subkey = phlox.random.split(key)``."""


# Where users find them, and what tracebacks and pickles say.
for _name in __all__:
    globals()[_name].__module__ = "phlox.errors"
