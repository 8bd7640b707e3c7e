"""The stages of a jitted call (traced, lowered, compiled), for inspection and ahead-of-time compilation."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, overload, runtime_checkable

from ..._base import pytree
from ..._base.errors import (
    DeviceError,
    InconclusiveDimensionOperation,
    OptionError,
    ShapeError,
    UnexpectedTracerError,
    UnsupportedError,
)
from ..._base.pytree import PyTreeDef, flatten
from ..._ir.avals import ShapedArray, typeof_value
from ..._ir.dimensions import is_symbolic
from ..._ir.jaxpr import ClosedJaxpr
from ..._trace.interpret import eval_jaxpr
from ..._trace.refs import Ref
from ..._trace.trace import Tracer, not_an_array
from ..._xla import analysis as inspection
from ..._xla.array import ArrayImpl
from ..._xla.bindings import parse
from ..._xla.compile import JaxRuntimeError
from ..._xla.device_assignment import DeviceAssignment
from ..._xla.devices import Device
from ..._xla.host_values import as_array
from ..._xla.layout import Format, Layout
from ..._xla.moves import move
from ..._xla.placement import Placed, Placement, is_committed, sharding_of
from ..._xla.platforms import platform_name
from ..._xla.program import Lowering, Program, explain_failure, has_sharding
from .bound_call import BoundCall
from .entry import NUMBERS, Entry
from .options import CompilerOptions, Options, Prefix, as_overrides
from .programs import struct_of, with_shardings

if TYPE_CHECKING:
    from ..checks.explanation import Explanation
    from .caches import Stats


@dataclasses.dataclass(frozen=True)
class ArgInfo:
    """One array among the arguments of a stage: its type, and whether it is donated.

    >>> phlox.jit(lambda x: x).lower(1.0).args_info
    ((ArgInfo(_aval=ShapedArray(float32[], weak_type=True), donated=False),), {})
    """

    _aval: ShapedArray
    donated: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self._aval.shape

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self._aval.dtype


P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R", covariant=True)
S = TypeVar("S")


# As in JAX: `isinstance(f, Wrapped)` tells whether a function is jitted.
@runtime_checkable
class Wrapped(Protocol[P, R]):
    """A function that can also be traced and lowered: the type of what `jit` and `pmap` return."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs the function, compiled for these arguments."""
        ...

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """The function as a program, for arguments like these."""

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The program as the compiler's input: ``trace(*args, **kwargs).lower()``."""


class Jitted(Wrapped[P, R], Protocol[P, R]):
    """The type of what `jit` returns: a plain function with these methods.

    `trace`, `lower` and `eval_shape` take a `ShapeDtypeStruct` where the function takes an array.
    """

    __name__: str

    @property
    def __wrapped__(self) -> Callable[P, R]:
        """The function itself."""
        ...

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Shapes and dtypes of the result; see `phlox.eval_shape`."""

    def stats(self) -> Stats:
        """How many programs were traced and compiled, how long that took, and how often they ran."""
        ...

    def explain(self) -> Explanation:
        """The compiled programs as a table: types, times, calls, and why each was compiled."""
        ...

    def clear_cache(self) -> None:
        """Clears the caches of this function."""

    # Without these, a type checker would take a jitted method for an attribute that needs `self` passed.
    @overload
    def __get__(self, instance: None, owner: type) -> Jitted[P, R]: ...
    @overload
    def __get__(self: Jitted[Concatenate[S, Q], R], instance: S, owner: type | None = None) -> Callable[Q, R]: ...


class Signature:
    """The arguments and results of a traced call, which all of its stages share: structures, types and names."""

    def __init__(
        self,
        bound: BoundCall,
        donated: frozenset[int],
        out_tree: PyTreeDef,
        out_avals: Sequence[ShapedArray],
        out_shardings: Prefix | None,
        used_indices: Sequence[int] = (),
        num_consts: int = 0,
    ):
        self.in_tree = bound.tree
        self.in_avals = bound.types
        self.placements: Sequence[Placement] = [
            a if k in NUMBERS else k for a, k in zip(bound.types, bound.keys, strict=True)
        ]
        #: returns the path of each leaf in the user's terms
        self.names = bound.names
        self.donated = donated
        self.out_tree = out_tree
        self.out_avals = out_avals
        self.out_shardings = out_shardings
        #: indices of the leaves that the program reads, after its first `num_consts` arguments, the closed-over arrays,
        #: which are no leaves of the user's tree
        self.used_indices = used_indices
        self.num_consts = num_consts

    def spread(self, per_argument: Sequence[Any]) -> Any:
        """A tree like (args, kwargs), from one value for each argument of the program; None for unused leaves."""
        by_leaf = dict(zip(self.used_indices, per_argument[self.num_consts :], strict=True))
        return self.in_tree.unflatten([by_leaf.get(i) for i in range(self.in_tree.num_leaves)])


class Stage:
    """Base class of traced, lowered and compiled functions: properties of their arguments and results."""

    def __init__(self, call: Signature):
        self._call = call

    @property
    def in_tree(self) -> PyTreeDef:
        """The structure of (args, kwargs), without static arguments."""
        return self._call.in_tree

    @property
    def in_avals(self) -> Any:
        """The types of the arguments, as a tree (args, kwargs)."""
        return self._call.in_tree.unflatten(self._call.in_avals)

    @property
    def args_info(self) -> Any:
        """An `ArgInfo` for each array of (args, kwargs)."""
        call = self._call
        return call.in_tree.unflatten([ArgInfo(aval, i in call.donated) for i, aval in enumerate(call.in_avals)])

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Indices of the leaves of (args, kwargs) that are donated."""
        return tuple(sorted(self._call.donated))

    @property
    def out_tree(self) -> PyTreeDef:
        """The structure of the result."""
        return self._call.out_tree

    @property
    def out_info(self) -> Any:
        """The result as a tree of `ShapeDtypeStruct`, with the shardings of `out_shardings`."""
        structs = self._call.out_tree.unflatten([struct_of(aval) for aval in self._out_types])
        return with_shardings(structs, self._call.out_shardings)

    @property
    def _out_types(self) -> list[ShapedArray]:
        """The types of the results, as `out_info` shows them. As in JAX, lowering forgets which were weak."""
        return [aval.update(weak_type=False) for aval in self._call.out_avals]


class Traced(Stage):
    """A function traced for one kind of arguments. Calling it runs the traced program, operation by operation.

    Attributes:
      jaxpr: its program.
      fun_name: the name of the function.
    """

    def __init__(
        self,
        call: Signature,
        closed: ClosedJaxpr,
        consts: list[Any],
        lower: Callable[..., Lowered],
        described: Sequence[Any],
    ):
        super().__init__(call)
        #: for each argument the sharding that its `ShapeDtypeStruct` has, or None
        self._described = described
        count = len(consts)
        jaxpr = closed.jaxpr
        # Constants are the leading inputs of a trace, for caching. Users see them as constants, as in JAX.
        opened = jaxpr.replace(constvars=jaxpr.invars[:count], invars=jaxpr.invars[count:])
        self.jaxpr = ClosedJaxpr(opened, consts)
        self.fun_name = jaxpr.name
        self._lower = lower

    @property
    def effects(self) -> frozenset[Any]:
        """The side effects of its program, such as prints."""
        return frozenset(self.jaxpr.effects)

    @property
    def out_avals(self) -> Any:
        """The types of the result, as a tree."""
        return self._call.out_tree.unflatten(self._call.out_avals)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves = _checked_leaves(self._call, f"the traced function {self.fun_name}", args, kwargs)
        # Running equation by equation cannot write the references; the compiled program can.
        if any(type(x) is Ref for x in leaves):
            return self.lower().compile()(*args, **kwargs)
        return self.out_tree.unflatten(eval_jaxpr(self.jaxpr.jaxpr, self.jaxpr.consts, *leaves))

    def closure_convert(self) -> tuple[list[Any], Callable[..., Any]]:
        """The arrays that the function closes over, and a function that takes them as its first argument.

        Returns:
          (consts, fun): ``fun(consts, *args, **kwargs)`` is the result of a call. Other arrays of the same types may
          take the place of `consts`.

        >>> w = jnp.arange(3.0)
        >>> consts, fun = phlox.jit(lambda x: x @ w).trace(jnp.ones(3)).closure_convert()
        >>> float(fun([2 * consts[0]], jnp.ones(3)))
        6.0
        """

        def fun(consts: Any, *args: Any, **kwargs: Any) -> Any:
            leaves = _checked_leaves(self._call, f"the traced function {self.fun_name}", args, kwargs)
            return self.out_tree.unflatten(eval_jaxpr(self.jaxpr.jaxpr, pytree.tree_leaves(consts), *leaves))

        return list(self.jaxpr.consts), fun

    @property
    def _out_types(self) -> list[ShapedArray]:
        return list(self._call.out_avals)

    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> Lowered:
        """The next stage.

        Args:
          lowering_platforms: platforms, such as ``("cuda",)``, which this process may lack; None for the platform of
            the arguments. The text is for that of the arguments if it is among them, else for the first one.

        Returns:
          A `Lowered`.

        >>> type(phlox.jit(jnp.sin).trace(1.0).lower()).__name__
        'Lowered'
        """
        lowered = self._lower()
        if lowering_platforms is None:
            return lowered
        platforms = tuple(map(platform_name, lowering_platforms))
        if platforms and lowered._platform not in platforms:
            lowered = self._lower(platform=platforms[0])
        lowered.platforms = platforms
        return lowered


class Lowered(Stage):
    """A function lowered to StableHLO, the input of the compiler.

    Attribute `platforms`: the platforms it was lowered for, or None for that of its arguments.
    """

    def __init__(self, call: Signature, lowering: Lowering, make_entry: Callable[[Program], Entry], options: Options):
        super().__init__(call)
        self._lowering = lowering
        self._make_entry = make_entry
        self._options = options
        self.platforms: tuple[str, ...] | None = None

    @property
    def _platform(self) -> str:
        """The platform of the arguments."""
        return platform_name(self._lowering.assignment.devices[0].platform)

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The module as text.

        Args:
          dialect: ``"stablehlo"``, which is exactly what the compiler gets, or ``"hlo"``; None for the first.
          debug_info: add to each operation its scopes (`named_scope`) and the user's source line, and to each argument
            its name.

        Returns:
          A string.

        Raises:
          OptionError: there is no such dialect.

        >>> "stablehlo.sine" in phlox.jit(jnp.sin).lower(1.0).as_text()
        True
        """
        # The text for the compiler's cache has no locations, or moving a line of the user's would compile all anew.
        text = self._located() if debug_info else self._lowering.text
        return inspection.hlo_text(text, metadata=debug_info) if _dialect(dialect) == "hlo" else text

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The module as an object of the compiler: of MLIR for ``"stablehlo"``, an XLA computation for ``"hlo"``."""
        make = inspection.computation if _dialect(dialect) == "hlo" else parse
        return make(self._located())

    def _located(self) -> str:
        """The module as text with locations."""
        call, names = self._call, self._call.names()
        # Closed-over arrays and references have no names. They come before and after the arguments of the call.
        used = [names[i] if i < len(names) else None for i in call.used_indices]
        return self._lowering.located(names=[*[None] * call.num_consts, *used])[0]

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimates for the program before it is optimised: flops, bytes accessed …"""
        return inspection.cost(self._lowering.text, self._lowering.assignment.devices[0])

    def compile(
        self,
        compiler_options: CompilerOptions | None = None,
        *,
        device_assignment: Sequence[Device] | None = None,
    ) -> Compiled:
        """The next stage. The flag `compile_effort` and the option ``"tiered"`` are for calls: they do not count here.

        Args:
          compiler_options: options of XLA, such as ``{"xla_backend_optimization_level": 0}``; they are added to those
            of `jit`.
          device_assignment: None, or the devices that the function was lowered for.

        Returns:
          A `Compiled`.

        Raises:
          CompilerOptionError: an option or a value that XLA does not know.
          DeviceError: the program was lowered for other platforms.
          InconclusiveDimensionOperation: it was lowered for symbolic shapes.
          UnsupportedError: `device_assignment` has other devices.

        >>> phlox.jit(jnp.sin).lower(1.0).compile()(0.0)
        Array(0., dtype=float32, weak_type=True)
        """
        for aval in self._call.in_avals:
            if any(map(is_symbolic, aval.shape)):
                raise InconclusiveDimensionOperation(
                    f"a program for an argument of type {aval.short} cannot be compiled: its lengths have no values",
                    instead="phlox.export.export, whose functions are compiled for each shape of a call",
                )
        devices = self._lowering.assignment.devices
        if device_assignment is not None and tuple(device_assignment) != devices:
            raise UnsupportedError(
                "compile: device_assignment other than the devices that the function was lowered for",
                instead="lower with arguments (or ShapeDtypeStructs with shardings) that lie on these devices",
            )
        if self.platforms is not None and self._platform not in self.platforms:
            raise DeviceError(
                f"a function that was lowered for {', '.join(self.platforms)} cannot be compiled for {self._platform}",
                instead="lower() without lowering_platforms",
            )
        # Options of this call come last, and so override those of `jit`.
        overrides = as_overrides({**dict(self._options.compiler_options), **(compiler_options or {})})
        program = self._lowering.compile(overrides, self._options.compile_effort)
        return Compiled(self._call, self._lowering.assignment, self._lowering.placements, self._make_entry(program))


class Compiled(Stage):
    """A program compiled for one kind of arguments. Calling it never traces; calls leave out static arguments."""

    def __init__(self, call: Signature, assignment: DeviceAssignment, placements: Sequence[Placement], entry: Entry):
        super().__init__(call)
        self._assignment = assignment
        self._placements = placements
        self._entry = entry
        self._program = entry.program

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves = _checked_leaves(self._call, "this compiled function", args, kwargs)
        refuse_tracers(leaves, "a particular signature")
        leaves = self._placed(leaves)
        try:
            return self._entry.run(leaves)
        except (JaxRuntimeError, ValueError, RuntimeError):
            explain_failure(leaves, self._call.names())
            raise

    def _placed(self, leaves: list[Any]) -> list[Any]:
        """The leaves with the shardings of the program: uncommitted arrays are moved, others must have them."""
        call, start = self._call, self._call.num_consts
        for i, placement, expected in zip(
            call.used_indices, self._placements[start:], self._assignment.shardings[start:], strict=True
        ):
            # References, and the values of closed-over ones, are read in the call: `ReferenceEntry.run`.
            if i >= len(leaves) or type(x := leaves[i]) is Ref:
                continue
            if type(x) is not ArrayImpl:
                if type(placement) is Placed:  # lowered for an array on other devices than the default one
                    leaves[i] = move(as_array(x), sharding_of(placement), committed=is_committed(placement))
                continue
            # Placements are interned, so this compares type, sharding and commitment at once.
            if x._placement is placement:
                continue
            if x.committed and not has_sharding(x._placement, expected):
                name = call.names()[i]
                raise DeviceError(
                    f"Computation was compiled for input shardings that disagree with the shardings of arguments "
                    f"passed to it: argument {name}, {x.aval.short}, lies as {x.sharding}, and was compiled for "
                    f"{expected}",
                    instead="phlox.device_put of the argument to the sharding of compiled.input_shardings",
                    argument=name,
                    sharding=x.sharding,
                )
            leaves[i] = move(x, sharding_of(placement), committed=is_committed(placement))
        return leaves

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program: the same as calling this object."""
        return self(*args, **kwargs)

    def as_text(self) -> str:
        """The optimised program, as the compiler prints it."""
        return self._program.executable.get_hlo_text()

    def cost_analysis(self) -> dict[str, float] | None:
        """XLA's estimates for the optimised program: flops, bytes accessed … None where the backend has none."""
        return _if_implemented(lambda: dict(self._program.executable.cost_analysis()))

    def memory_analysis(self) -> Any:
        """Sizes of arguments, results and temporary memory, in bytes. None where the backend does not report them."""
        return _if_implemented(self._program.executable.get_compiled_memory_stats)

    def runtime_executable(self) -> Any:
        """jaxlib's loaded executable."""
        return self._program.executable

    @property
    def out_info(self) -> Any:
        """The result as a tree of `ShapeDtypeStruct`, with the shardings of the compiled program."""
        shardings = self._program.out_shardings
        # After the results, the program returns new values of references, which are not shown.
        structs = [struct_of(a, s) for a, s in zip(self._out_types, shardings, strict=False)]
        return self.out_tree.unflatten(structs)

    @property
    def _shardings(self) -> list[Any]:
        """The shardings of the arguments. On one device they are the arguments' own, which may name a mesh."""
        pairs = zip(self._assignment.shardings, map(sharding_of, self._placements), strict=True)
        return [
            own if own.devices == assigned.devices and len(own.devices) == 1 else assigned for assigned, own in pairs
        ]

    @property
    def input_shardings(self) -> Any:
        """The sharding of each argument, as a tree (args, kwargs); None for those that the program does not read."""
        return self._call.spread(self._shardings)

    @property
    def output_shardings(self) -> Any:
        """The sharding of each result, as a tree."""
        return self.out_tree.unflatten(self._program.out_shardings[: self.out_tree.num_leaves])

    @property
    def input_formats(self) -> Any:
        """Layout and sharding of each argument, as a tree (args, kwargs)."""
        layouts = self._program.executable.get_parameter_layouts()
        return self._call.spread(_formats(layouts, self._shardings))

    @property
    def output_formats(self) -> Any:
        """Layout and sharding of each result, as a tree."""
        layouts = self._program.executable.get_output_layouts()
        return self.out_tree.unflatten(_formats(layouts, self._program.out_shardings)[: self.out_tree.num_leaves])


def refuse_tracers(leaves: Sequence[Any], compiled_for: str) -> None:
    """Raises `UnexpectedTracerError` if there are tracers among the arguments of a compiled program."""
    for x in leaves:
        if isinstance(x, Tracer):
            raise UnexpectedTracerError(
                f"Cannot apply JAX transformations to a function lowered and compiled for {compiled_for}. Detected "
                f"argument of type {type(x)}: a traced {x.aval.short}",
                instead="the jitted function itself, inside of grad, vmap and jit",
                aval=x.aval,
            )


def _formats(layouts: Sequence[Any], shardings: Sequence[Any]) -> list[Format]:
    return [Format(Layout.of(layout._xla_layout()), s) for layout, s in zip(layouts, shardings, strict=True)]


def _if_implemented(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except JaxRuntimeError as error:
        # A backend without this feature is no error of the user's.
        if str(error).startswith("UNIMPLEMENTED"):
            return None
        raise


def _dialect(dialect: str | None) -> str:
    if dialect not in (None, "stablehlo", "hlo"):
        raise OptionError(f"there is no dialect {dialect!r} of programs", instead="'stablehlo' or 'hlo'")
    return dialect or "stablehlo"


def _checked_leaves(call: Signature, what: str, args: Any, kwargs: Any) -> list[Any]:
    """The leaves of a call; raises if their treedef or types differ from those the function was traced for."""
    leaves, tree = flatten((args, kwargs))
    pytree.check_same(
        call.in_tree,
        tree,
        f"Function compiled with input pytree does not match the input pytree it was called with: {what}",
    )
    mismatches = []
    for i, (expected, x) in enumerate(zip(call.in_avals, leaves, strict=True)):
        have = x.aval if type(x) is Ref else typeof_value(x)
        if have is None:
            raise not_an_array(x, "an argument")
        # Weak types do not count: they matter while a function is traced, and this one has been.
        if type(have) is not type(expected) or (have.shape, have.dtype) != (expected.shape, expected.dtype):
            mismatches.append((call.names()[i], expected, have))
    if mismatches:
        lines = [
            f"Argument '{name}' compiled with {expected.str_short(False)} and called with {have.str_short(False)}"
            for name, expected, have in mismatches
        ]
        name, expected, have = mismatches[0]
        raise ShapeError(
            f"Argument types differ from the types for which {what} was compiled. The mismatches are:\n"
            + "\n".join(lines),
            instead="the jitted function itself, which compiles for each type",
            argument=name,
            shapes=[expected.shape, have.shape],
        )
    return leaves
