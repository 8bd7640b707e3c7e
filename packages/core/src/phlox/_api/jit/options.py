"""The options of `jit` in hashable form, for cache keys, and checks of them."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..._base import pytree
from ..._base.errors import ArgumentError, CompilerOptionError, OptionError, ShapeError
from ..._base.pytree import PyTreeDef, flatten
from ..._ir.avals import ShapedArray
from ..._xla.compile_effort import CHOICES
from ..._xla.cpu_emitter import Overrides
from ..._xla.devices import Device, local_devices
from ..._xla.sharding import Sharding
from ..devices.meshes import named
from .inlining import Inline


class CompilerEffortLevel(enum.Enum):
    """How much time XLA's compiler spends: values of its options ``optimization_level``, ``memory_fitting_level``.

    Compilers for CPUs have one level. The option `compile_effort` of `jit` works on them.

    >>> CompilerEffortLevel("O1").value
    19
    """

    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39

    @classmethod
    def _missing_(cls, value: Any) -> CompilerEffortLevel | None:
        return cls.__members__.get(value) if isinstance(value, str) else None


CompilerOptions = dict[str, str | bool | int | float | CompilerEffortLevel]

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypedDict

    class JitOptions(TypedDict, total=False):
        """The options of `jit`, for the types of its two forms: a call and a decorator."""

        in_shardings: Any
        out_shardings: Any
        static_argnums: int | Iterable[int] | None
        static_argnames: str | Iterable[str] | None
        donate_argnums: int | Iterable[int] | None
        donate_argnames: str | Iterable[str] | None
        keep_unused: bool
        device: Device | None
        backend: str | None
        inline: bool | Inline
        compiler_options: CompilerOptions | None
        compile_effort: str | None
        checks: str | None
        max_traces: int | None
        sizes: Mapping[str, Any] | str | None
        buckets: Sequence[int] | Mapping[str, Sequence[int]] | None


class Prefix(NamedTuple):
    """A tree of shardings (None: not specified) in hashable form: a tree prefix of (args, kwargs), or of results."""

    option: str  # "in_shardings" or "out_shardings", for error messages
    leaves: tuple[Any, ...]
    tree: PyTreeDef

    @staticmethod
    def of(option: str, tree: Any) -> Prefix | None:
        """The prefix for the tree that a user passed as `option`; None for None."""
        if tree is None:
            return None
        # None is a leaf here: it means "not specified", and must not vanish from the tree.
        leaves, treedef = flatten(tree, pytree.is_none)
        return Prefix(option, tuple(leaves), treedef)

    def spread(self, tree: Any) -> list[Sharding | None]:
        """One sharding for each leaf of `tree`."""
        return self.spread_over(tree, flatten(tree)[0])

    def spread_over(self, tree: Any, leaves: Sequence[Any]) -> list[Sharding | None]:
        """One sharding for each of the leaves of `tree`, which may be a structure."""
        # Not cached, as trees of arguments differ; calls on the fast path do not come here.
        shardings = pytree.spread(f"jit {self.option}", self.tree.unflatten(self.leaves), tree, pytree.is_none)
        return [_sharding(self.option, s, leaf) for s, leaf in zip(shardings, leaves, strict=True)]


def _sharding(option: str, required: Any, leaf: Any) -> Sharding | None:
    if hasattr(required, "layout"):  # a `Format`, whose class takes 3 ms to import
        order = getattr(required.layout, "major_to_minor", ())
        ndim = getattr(leaf, "ndim", len(order))  # numbers have none, nor have leaves of classes that take no types
        required = required.sharding_in_order("jit", ndim, is_for_compiler=True)
    sharding = named("jit", required)
    if not isinstance(sharding, Sharding | None):
        raise ArgumentError(
            f"jit: {option} has {sharding!r} of type {type(sharding).__name__}",
            instead="a NamedSharding, a PartitionSpec, phlox.sharding.SingleDeviceSharding(device), or None",
        )
    return sharding


def check_fit(
    option: str, shardings: Sequence[Sharding | None], avals: Iterable[ShapedArray], names: Callable[[], Sequence[str]]
) -> None:
    """Raises if arrays of the types `avals` cannot be laid out by the `shardings` of an option of `jit`.

    XLA would pad axes that cannot be split evenly, and no process could read such an array.
    """
    for i, (sharding, aval) in enumerate(zip(shardings, avals, strict=True)):
        if sharding is None:
            continue
        try:
            sharding.shard_shape(aval.shape)
        except ShapeError as error:
            what = f"jit: {option} has {sharding} for {names()[i]}, {aval.short}: {error.what}"
            raise ShapeError(what, instead=error.instead, sharding=sharding) from None


class Options(NamedTuple):
    """The options passed to `jit`, in hashable form."""

    static_argnums: tuple[int, ...] = ()
    static_argnames: tuple[str, ...] = ()
    donate_argnums: tuple[int, ...] = ()
    donate_argnames: tuple[str, ...] = ()
    keep_unused: bool = False
    inline: Inline = Inline.AUTO
    device: Device | None = None
    in_shardings: Prefix | None = None
    out_shardings: Prefix | None = None
    compiler_options: Overrides = ()
    #: a value of the flag of this name, or None for the flag's
    compile_effort: str | None = None
    #: those of "static" and "donate" for which both numbers and names were given, so that neither is completed
    verbatim: tuple[str, ...] = ()
    #: whether committed arguments are moved to `in_shardings`, too, as those of `pmap` are
    moves_arguments: bool = False
    #: a value of the flag of this name, or None for the flag's
    checks: str | None = None
    #: how many traces are allowed; None for any number
    max_traces: int | None = None


def as_effort(effort: str | None) -> str | None:
    """The option `compile_effort` of `jit`. Raises `OptionError` for values that the flag does not have."""
    if effort is not None and effort not in CHOICES:
        raise OptionError(f"jit: compile_effort={effort!r}", instead="one of " + ", ".join(map(repr, CHOICES)))
    return effort


def as_checks(checks: str | None) -> str | None:
    """The option `checks` of `jit`. Raises `OptionError` for values that the flag does not have."""
    if checks not in (None, "off", "default", "strict"):
        raise OptionError(f"jit: checks={checks!r}", instead="'off', 'default' or 'strict'")
    return checks


def as_limit(max_traces: int | None) -> int | None:
    """The option `max_traces` of `jit`. Raises `OptionError` for what is no positive integer."""
    if max_traces is not None and (type(max_traces) is not int or max_traces < 1):
        raise OptionError(f"jit: max_traces={max_traces!r}", instead="a positive integer, or None for any number")
    return max_traces


def as_overrides(options: CompilerOptions | None) -> Overrides:
    """Options of XLA in hashable form, effort levels as numbers."""
    result: dict[str, Any] = dict(options or {})
    for name, value in result.items():
        if name in ("optimization_level", "memory_fitting_level") and isinstance(value, str | CompilerEffortLevel):
            try:
                result[name] = CompilerEffortLevel(value).value
            except ValueError as error:
                names = ", ".join(map(repr, CompilerEffortLevel.__members__))
                raise CompilerOptionError(
                    f"compiler_options: {name}: {error}", instead=f"one of {names}", options=result
                ) from None
        elif not isinstance(name, str) or not isinstance(value, str | bool | int | float):
            raise CompilerOptionError(
                f"compiler_options: {name!r} is {value!r} of type {type(value).__name__}",
                instead="strings, bools and numbers, by the names of XLA's flags",
                options=result,
            )
    # Sorted, so that dicts in other orders are one cache key.
    return tuple(sorted(result.items()))


def as_device(device: Device | None, backend: str | None, in_shardings: Any, out_shardings: Any) -> Device | None:
    """The device that `device` or `backend` name: one option. Raises `OptionError` if two options say where to run."""
    if device is not None and backend is not None:
        raise OptionError("jit: can't specify both a device and a backend", instead="one of them")
    if (device is not None or backend is not None) and (in_shardings is not None or out_shardings is not None):
        name = "in_shardings" if in_shardings is not None else "out_shardings"
        raise OptionError(f"jit: device or backend, and {name}, which names devices too", instead=f"{name} alone")
    return device if backend is None else local_devices(backend=backend)[0]


def check_jittable(fun: Any, options: Options) -> None:
    """Raises for functions that cannot be jitted, and for arguments that are both static and donated."""
    if isinstance(fun, staticmethod):
        raise ArgumentError("jit: staticmethod arguments are not supported", instead="@staticmethod above @jit")
    if inspect.isgeneratorfunction(fun):
        raise ArgumentError(
            f"jit: Expected a function, got a generator function: {fun}", instead="a function that returns its results"
        )
    shared = set(options.static_argnames) & set(options.donate_argnames)
    if shared or set(options.static_argnums) & set(options.donate_argnums):
        what = "argnames" if shared else "argnums"
        raise OptionError(
            f"jit: static_{what} and donate_{what} cannot intersect", instead="an argument is one or the other"
        )
