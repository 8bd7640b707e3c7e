"""From a Jaxpr to a compiled program that can be called.

`assign_devices` (device_assignment.py) chooses devices and shardings, `lower` writes the StableHLO text,
`Lowering.compile` makes the `Program`, and `Program.run` executes it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._base import config, errors
from .._base.monitoring import COMPILE, LOWER, log_stage, timed
from .._ir.avals import ShapedArray, typeof_value
from .._ir.effects import Effects
from .._ir.jaxpr import Jaxpr, JaxprEqn, Var
from .._ir.key_uses import has_key_types
from .._ir.memory_spaces import kind_of
from .._ir.primitive import primitive
from .._ir.sharding_types import any_specs
from . import background, memory
from .array import Array, ArrayImpl, deleted, put, wrap_all
from .callbacks import observed
from .compile import JaxRuntimeError, Loaded, compilation_of, compile_text
from .compile_effort import FAST, MOST_ELEMENTS, QUICK, elements
from .cpu_emitter import Overrides, emitter_options
from .device_assignment import DeviceAssignment, assign_devices, concrete_sharding, mesh_of, with_devices
from .devices import Device
from .donation import deleting, reused
from .host_values import operand
from .mesh import Mesh, current_mesh
from .module_text import module_text
from .partition_spec import PartitionSpec
from .placement import Placement, aval_of, placement_for, sharding_of
from .repeated_columns import product_options
from .sharding import (
    HloSharding,
    NamedSharding,
    Sharding,
    from_hlo,
    interned,
    partition_spec,
    single_device,
    type_with_sharding,
)
from .signals import RunChecks, may_rerun, required_checks
from .text import Module
from .transfer import result_handler
from .vector_width import vector_options


class Program:
    """A loaded executable, with all that a call needs computed beforehand."""

    __slots__ = (
        "__weakref__", "checks", "donated", "executable", "execute", "handlers", "is_direct", "is_private", "mark_keys",
        "optimized", "out_avals", "out_placements", "out_shardings", "serialized", "target_shardings", "text",
    )  # fmt: skip

    def __init__(
        self,
        loaded: Loaded,
        text: str,
        assignment: DeviceAssignment,
        in_placements: Sequence[Placement],
        out_avals: Sequence[ShapedArray],
        out_shardings: Sequence[Sharding | None] | None = None,
        checks: RunChecks | None = None,
        mark_keys: Callable[[Any], Any] | None = None,
        donated: frozenset[int] = frozenset(),
        execute: Callable[[Sequence[Any]], Any] | None = None,
    ):
        self.executable = executable = loaded.executable
        self.serialized = loaded.serialized
        #: whether the program calls objects of this process: `execute` is then not the executable's
        self.is_private = execute is not None
        self.text = text
        #: for each argument the sharding it must be moved to, or None; empty if no argument must be moved
        self.target_shardings = [
            None if has_sharding(placement, sharding) else sharding
            for placement, sharding in zip(in_placements, assignment.shardings, strict=True)
        ]
        if not any(self.target_shardings):
            self.target_shardings = []
        shardings = _output_shardings(executable, assignment, in_placements, out_avals)
        pairs = zip(shardings, (kind_of(a.memory_space) for a in out_avals), strict=True)
        shardings = [s if kind is None else s.with_memory_kind(kind) for s, kind in pairs]
        if out_shardings is not None:
            shardings = [requirement or actual for requirement, actual in zip(out_shardings, shardings, strict=True)]
        self.out_shardings = shardings
        arguments = zip(map(aval_of, in_placements), assignment.shardings, strict=True)
        #: indices of the arguments whose buffers results reuse
        self.donated = reused(donated, [*arguments], [*zip(out_avals, shardings, strict=True)]) if donated else donated
        self.execute = deleting(execute or executable.execute_sharded, self.donated)
        # Commitment is one property of the whole program: if an argument is committed, or a result is in another memory
        # than the default one, all results are.
        committed = assignment.committed or any(s.kind is not None for s in shardings)
        self.out_placements = [placement_for(a, s, committed) for a, s in zip(out_avals, shardings, strict=True)]
        self.out_avals = [aval_of(placement) for placement in self.out_placements]
        self.handlers = [result_handler(a.physical, s) for a, s in zip(out_avals, shardings, strict=True)]
        self.checks = checks
        #: records the PRNG keys that a run uses, called with its buffers, which it returns; see `key_records`
        self.mark_keys = mark_keys
        #: whether eager calls use `execute` instead of `run`: nothing is moved or checked, and there is one result
        self.is_direct = not (self.target_shardings or checks or mark_keys) and len(self.out_avals) == 1
        #: makes the optimized form of a program that was compiled quickly; None for other programs
        self.optimized: Callable[[], Program] | None = None

    def replace_later(self, owner: Any, name: str, install: Callable[[Any, Program], None]) -> None:
        """If this program was compiled at low effort, compiles the optimized one on a thread; see
        `background.replace_later`."""
        make, self.optimized = self.optimized, None
        if make is not None:
            background.replace_later(owner, name, make, install)

    def adopt(self, x: Any, i: int, fresh: bool = False) -> Array:
        """Argument number `i`, a number or NumPy array, as an array with the sharding that the program needs.

        With `fresh` the array has a buffer of its own, which may be donated.
        """
        target = self.target_shardings[i] if self.target_shardings else None
        if target is None and not fresh:
            return operand(x)
        aval = typeof_value(x)
        assert aval is not None
        # The sharding is given only where the argument must have it; otherwise the array goes where new ones go.
        return put(np.asarray(x, aval.dtype), aval, target, committed=target is not None)

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Executes the program; `arrays` must have the placements that it was lowered for."""
        arguments = arrays
        if self.target_shardings:
            from .moves import move  # moves.py imports this module

            arrays = [a if s is None else move(a, s) for a, s in zip(arrays, self.target_shardings, strict=True)]
        # The checks get the arguments as the user passed them, before they are moved.
        if self.checks is not None:
            self.checks.before(arguments)
        if self.mark_keys is not None:
            self.mark_keys([a._buf for a in arguments])
        try:
            bufs = self.execute([a._buf for a in arrays]).consume_with_handlers(self.handlers)
        except (JaxRuntimeError, ValueError, RuntimeError):
            explain_failure(arrays)
            raise
        if self.target_shardings:
            # As in JAX, a donated argument that was copied to all devices gives up its own buffer too.
            for i in self.donated:
                target = self.target_shardings[i]
                if target is not None and target.is_fully_replicated:
                    arguments[i].delete()
        outs = wrap_all(bufs, self.out_avals, self.out_placements)
        if self.checks is not None:
            self.checks.after(arguments, outs)
        return outs


def has_sharding(placement: Placement, sharding: Sharding) -> bool:
    """Whether arrays with this placement have the same parts on the same devices as arrays with this sharding."""
    current = sharding_of(placement)
    # Equal shardings are the common case, and `is_equivalent_to` computes HLO forms.
    return current == sharding or current.is_equivalent_to(sharding, aval_of(placement).physical.ndim)


def explain_failure(leaves: Sequence[Any], names: Sequence[str] | str = "an array") -> None:
    """Raises a `DeletedArrayError` if an array among `leaves`, the arguments of a failed run, is deleted.

    Raises one too if an array is passed twice and donated, and an `OutOfMemoryError` if the error that is handled says
    so. `names` are the names of the arguments, or one description for all.
    """
    error = sys.exc_info()[1]
    arrays = {i: x for i, x in enumerate(leaves) if type(x) is ArrayImpl}
    if error is not None:
        # After the run failed, and not before each call, which it would slow down.
        memory.explain(error)
        if "donate" in str(error):
            _refuse_shared(arrays, names)
    for i, array in arrays.items():
        if array.is_deleted():
            raise deleted(array, names if isinstance(names, str) else f"argument {names[i]}") from None


def _refuse_shared(arrays: dict[int, Array], names: Sequence[str] | str) -> None:
    """Raises a `DeletedArrayError` if two arguments of a failed run, of which it donates one, are the same array."""
    first: dict[int, int] = {}
    for i, array in arrays.items():
        j = first.setdefault(id(array._buf), i)
        if j != i:
            both = names if isinstance(names, str) else f"{names[j]} and {names[i]}"
            raise errors.DeletedArrayError(
                f"arguments {both} are the same array, of type {array.aval.short}, and the call donates one of them",
                instead="a copy of the array, as by x.copy(), or leave both out of donate_argnums",
                aval=array.aval,
            ) from None


def _output_shardings(
    executable: Any, assignment: DeviceAssignment, in_placements: Sequence[Placement], out_avals: Sequence[ShapedArray]
) -> list[Sharding]:
    if not out_avals:
        return []
    # A program on one device cannot put its results elsewhere.
    if len(assignment.devices) == 1 and assignment.mesh is None:
        return [single_device(assignment.devices[0])] * len(out_avals)
    protos = [] if len(assignment.devices) == 1 else executable.get_output_shardings()
    reported = [*map(HloSharding.from_proto, protos)] or [HloSharding.replicate()] * len(out_avals)
    arguments = (
        (aval_of(placement).physical.ndim, s)
        for placement, s in zip(in_placements, _by_mesh(assignment, in_placements), strict=True)
        if isinstance(s, NamedSharding)
    )
    rank, first = next(arguments, (0, None))
    # The program's mesh may be one of `explicit_axes`: results have the types of axes of the mesh around it.
    mesh, context = assignment.mesh, current_mesh()
    if mesh is not None and isinstance(context, Mesh) and context.is_equivalent_to(mesh):
        mesh = context
    result = []
    for hlo, aval in zip(reported, out_avals, strict=True):
        ndim = aval.physical.ndim
        typed = _sharding_in_type(aval, mesh)
        if typed is not None and typed.hlo(ndim) == hlo:
            result.append(interned(typed))
            continue
        # Several specs can describe one HloSharding. As in JAX, that of the first argument is preferred.
        same = first if first is not None and rank == ndim and first.hlo(ndim) == hlo else None
        # Without the argument's kind of memory, as results lie in the default one unless the program says otherwise.
        result.append(
            interned(NamedSharding(same.mesh, same.spec)) if same else from_hlo(assignment.devices, hlo, ndim, mesh)
        )
    return result


def _sharding_in_type(aval: ShapedArray, mesh: Mesh | None) -> NamedSharding | None:
    """The sharding of the type over a mesh with explicit axes, with an entry for each axis of the array."""
    if mesh is None or not mesh.explicit_axes or aval.physical.ndim != aval.ndim:
        return None
    return NamedSharding(mesh, partition_spec(aval.spec) if aval.spec else PartitionSpec(*(None,) * aval.ndim))


def _by_mesh(assignment: DeviceAssignment, in_placements: Sequence[Placement]) -> Sequence[Sharding]:
    """The shardings of the arguments; on one device `NamedSharding`s, if possible those of the caller's arrays."""
    if len(assignment.devices) > 1:
        return assignment.shardings
    whole = NamedSharding(assignment.mesh, PartitionSpec())
    return [s if isinstance(s := sharding_of(placement), NamedSharding) else whole for placement in in_placements]


class Lowering(NamedTuple):
    """A program as StableHLO text, with all that compiling and calling it need."""

    text: str
    assignment: DeviceAssignment
    placements: Sequence[Placement]
    out_avals: Sequence[ShapedArray]
    out_shardings: Sequence[Sharding | None] | None
    module: Module
    effects: Effects
    #: writes the text again, with the user's name scopes and source lines as locations; `names` are those of arguments
    located: Callable[..., tuple[str, Module]]
    name: str
    checks: RunChecks | None
    #: compiler options that jaxlib may lack, see `emitter_options`, `vector_options` and `product_options`
    default_options: Overrides
    jaxpr: Jaxpr
    #: indices of the arguments whose buffers results may reuse
    donated: frozenset[int]
    #: as in `Program`
    mark_keys: Callable[[Any], Any] | None
    #: whether it is the program of a function of phlox
    is_ours: bool

    @property
    def _has_addresses(self) -> bool:
        """Whether the text refers to functions of this process by their addresses."""
        # An address is valid in this process only, so such a text must not be a key on disk.
        return bool(self.module.references)

    def compile(self, overrides: Overrides = (), compile_effort: str | None = None) -> Program:
        """Compiles the program, or loads it from the disk cache.

        `overrides` are compiler options of the user. `compile_effort` is a value of the flag of this name. Only
        ``fast`` makes a difference here: calls of the result may be timed, and it may be stored.
        """
        return self._compiled(overrides, FAST if compile_effort == "fast" else ())

    def compile_for_calls(self, overrides: Overrides = (), compile_effort: str | None = None) -> Program:
        """As `compile`, where None stands for the value of the flag `compile_effort`. With ``tiered``, returns a
        program compiled at low effort, whose attribute `optimized` is set, unless the optimized one is on disk."""
        compile_effort = compile_effort or config.current().compile_effort
        if compile_effort != "tiered" or not self._can_be_quick():
            return self.compile(overrides, compile_effort)
        # The optimized program is better than a quick one, and loading it takes less time than either compilation.
        stored = self._program(overrides, self.default_options, only_stored=True)
        if stored is not None:
            return stored
        # The thread that optimizes waits meanwhile.
        with background.foreground():
            program = self._compiled(overrides, QUICK)
        program.optimized = functools.partial(self.compile, overrides)
        return program

    def _can_be_quick(self) -> bool:
        """Whether ``tiered`` applies. Processes that share a program must run the same one in each call, so it does not
        where there are several."""
        devices = self.assignment.devices
        return (
            devices[0].platform == "cpu"
            and len({device.process_index for device in devices}) == 1
            # Callbacks are functions of this process, which the second compilation would have to find again.
            and not (self._has_addresses or self.module.callbacks)
            and elements(self.jaxpr) <= MOST_ELEMENTS
        )

    def _compiled(self, overrides: Overrides, effort: Overrides) -> Program:
        """The program compiled, or loaded, with `effort`: the compiler options of a `compile_effort`."""
        types = ", ".join(aval_of(placement).short for placement in self.placements)
        log_stage("Compiling jit(%s) with global shapes and types [%s]", self.name, types)
        if (settings := config.current()).dump_ir_to:
            from .dumps import dump  # rarely needed

            dump(settings, self.name, self.jaxpr, self._dumped_text)
        on_cpu = self.assignment.devices[0].platform == "cpu"
        # The options are those of XLA's CPU compiler; others would refuse them.
        options = (*self.default_options, *(x for x in effort if x not in self.default_options)) if on_cpu else ()
        with compilation_of(self.jaxpr, self.name), timed(COMPILE, "XLA compilation of jit(%s)", self.name):
            program = self._program(overrides, options)
        assert program is not None
        return program

    def _dumped_text(self) -> str:
        return self.located()[0] if config.current().include_debug_info_in_dumps else self.text

    def _program(self, overrides: Overrides, default_options: Overrides, only_stored: bool = False) -> Program | None:
        """The program; with `only_stored` None if it is not on disk."""
        text, module = self.text, self.module
        if self._has_addresses:  # text and module must come from the same call
            # The text differs from `self.text` in the addresses alone.
            text, module = self.located()
        loaded = compile_text(
            text,
            self.assignment.devices,
            located=lambda: self.located()[0],
            shardy=module.shardy,
            outputs=len(self.out_avals),
            overrides=overrides,
            default_options=default_options,
            callbacks=module.callbacks,
            private=self._has_addresses,
            only_stored=only_stored,
        )
        if loaded is None:
            return None
        for callback in module.when_compiled:
            callback()
        return Program(
            loaded,
            self.text,
            self.assignment,
            self.placements,
            self.out_avals,
            self.out_shardings,
            checks=self.checks,
            mark_keys=self.mark_keys,
            donated=self.donated,
            execute=observed(loaded.executable, self.effects, self.is_ours)
            if self.effects or module.callbacks
            else None,
        )


def keep(cache: dict[Any, Program], key: Any, program: Program, name: str) -> Program:
    """Stores `program` in `cache`; if it was compiled at low effort, the optimized one replaces it there."""
    cache[key] = program

    def install(quick: Program, optimized: Program) -> None:
        # Not if the cache was cleared, or has got another program meanwhile.
        if cache.get(key) is quick:
            cache[key] = optimized

    program.replace_later(program, name, install)
    return program


#: adds attributes of operations to the texts that a function writes; set by ``jax.experimental.xla_metadata``
annotate: Callable[[Callable[..., tuple[str, Module]]], Callable[..., tuple[str, Module]]] | None = None


def lower(
    jaxpr: Jaxpr,
    name: str,
    placements: Sequence[Placement],
    *,
    device: Device | None = None,
    donated: frozenset[int] = frozenset(),
    results: Sequence[str] = (),
    in_shardings: Sequence[Sharding | None] | None = None,
    out_shardings: Sequence[Sharding | None] | None = None,
    platform: str | None = None,
    repeatable: bool = False,
    num_consts: int = 0,
) -> Lowering:
    """Lowers `jaxpr` for arguments with these placements, of which the first `num_consts` are closed over.

    `donated` are the indices of the arguments whose buffers outputs may reuse; `results` are the names of the outputs.
    `in_shardings` and `out_shardings` are the required shardings of arguments and outputs. A text for other processes
    is written for a `platform`, whichever this process has. A call of a `repeatable` program with the arguments of an
    earlier call counts as no second use of a PRNG key.
    """
    assignment = assign_devices(
        placements,
        device=device,
        mesh=mesh_of(jaxpr),
        shardings=in_shardings,
        out_shardings=out_shardings,
        num_consts=num_consts,
    )
    if out_shardings is not None:
        # An `AbstractMesh` in a requirement gets the devices that were chosen for the program.
        out_shardings = [s and concrete_sharding(s, assignment) for s in out_shardings]
    if any_specs() or (assignment.mesh is not None and assignment.mesh.explicit_axes):
        jaxpr = _with_partial_results(jaxpr, out_shardings or ())
        out_shardings = _result_shardings(jaxpr, assignment, placements, out_shardings)
    # The checks of nan evaluate the program again with the same arguments.
    if may_rerun():
        donated = frozenset()
    write: Callable[..., tuple[str, Module]] = functools.partial(
        module_text, jaxpr, name, assignment, placements, donated, results, out_shardings, platform
    )
    write = write if annotate is None else annotate(write)
    with timed(LOWER, "lowering of jit(%s)", name):
        # The text without locations comes first: it is what caches look up, and often the only one that is needed.
        text, module = write()
    keys_observer = _keys_observer(jaxpr, name, repeatable)
    # A marker records what a run uses in one pass over buffers; without one, `RunChecks` does it more slowly.
    mark_keys = keys_observer and keys_observer.marker(list(map(aval_of, placements)))
    return Lowering(
        text,
        assignment,
        placements,
        out_avals=[v.aval for v in jaxpr.outvars],
        out_shardings=out_shardings,
        module=module,
        effects=jaxpr.effects,
        located=functools.partial(write, locations=True),
        name=name,
        checks=required_checks(jaxpr, name, None if mark_keys else keys_observer),
        default_options=(*emitter_options(jaxpr), *vector_options(jaxpr), *product_options(jaxpr))
        if assignment.devices[0].platform == "cpu"
        else (),
        jaxpr=jaxpr,
        donated=donated,
        mark_keys=mark_keys,
        is_ours=not repeatable,
    )


def _keys_observer(jaxpr: Jaxpr, name: str, repeatable: bool) -> Any:
    """The `Observer` of PRNG keys that the flags `checks` and `debug_key_reuse` require for a program, or None."""
    settings = config.current()
    # Most processes never make a PRNG key, and then skip the analysis.
    if not has_key_types() or (settings.checks == "off" and not settings.debug_key_reuse):
        return None
    from .key_records import observer  # imported for programs with keys alone

    return observer(jaxpr, name, repeatable)


def _result_shardings(
    jaxpr: Jaxpr,
    assignment: DeviceAssignment,
    placements: Sequence[Placement],
    out_shardings: Sequence[Sharding | None] | None,
) -> Sequence[Sharding | None] | None:
    """The shardings of the results: `out_shardings`, else, over a mesh with explicit axes only, those in
    their types. Over other meshes the compiler chooses along the remaining axes."""
    context = current_mesh()
    known = [s.mesh for s in (*map(sharding_of, placements), *assignment.shardings) if isinstance(s, NamedSharding)]
    if isinstance(context, Mesh) and tuple(context.devices.flat) == assignment.devices:
        known.insert(0, context)
    mesh = next((m for m in (*known, assignment.mesh) if isinstance(m, Mesh)), None)
    # With `in_shardings`, a function is traced for types that do not say how its arguments are split, nor its results.
    arguments = zip(jaxpr.invars, assignment.shardings, strict=True)
    if mesh is None or any(v.aval.spec is None and _is_split(v.aval, s) for v, s in arguments):
        return out_shardings

    def in_type(aval: ShapedArray) -> Sharding | None:
        spec, typed_mesh = aval.spec, mesh
        # An exported program may name the axes otherwise than the mesh of its caller.
        if spec is not None and spec.mesh.size == mesh.size:
            typed_mesh = with_devices(spec.mesh, assignment.devices, mesh).update(axis_types=spec.mesh.axis_types)
        # Partial results are in no sharding that the compiler chooses.
        if not typed_mesh.are_all_axes_explicit and not (spec and spec.reductions.unreduced):
            return None
        entries = partition_spec(spec) if spec else PartitionSpec(*(None,) * aval.ndim)
        return interned(NamedSharding(typed_mesh, entries, memory_kind=kind_of(aval.memory_space)))

    in_types = [in_type(v.aval) for v in jaxpr.outvars]
    return [a or s for a, s in zip(out_shardings, in_types, strict=True)] if out_shardings else in_types


def _with_partial_results(jaxpr: Jaxpr, out_shardings: Sequence[Sharding | None]) -> Jaxpr:
    """The jaxpr with results that are resharded to the `out_shardings` whose devices hold partial results."""
    eqns, outvars = list(jaxpr.eqns), list(jaxpr.outvars)
    for i, (v, sharding) in enumerate(zip(jaxpr.outvars, out_shardings, strict=False)):
        if not (isinstance(sharding, NamedSharding) and sharding.is_unreduced):
            continue
        aval = type_with_sharding(v.aval, sharding)
        if aval is not v.aval:
            outvars[i] = out = Var(aval)
            params = {"mesh": sharding.mesh, "spec": sharding.spec}
            eqns.append(JaxprEqn([v], [out], primitive("reshard"), params))
    return jaxpr if len(eqns) == len(jaxpr.eqns) else jaxpr.replace(eqns=eqns, outvars=outvars)


def _is_split(aval: ShapedArray, sharding: Sharding) -> bool:
    """Whether the type of an array with this sharding says that it is split."""
    spec = type_with_sharding(aval, sharding).spec
    return spec is not None and any(spec.entries)
