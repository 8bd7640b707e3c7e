"""From a Jaxpr to a compiled program that can be called.

`plan` chooses devices and shardings from the keys of the arguments, `lower` writes the StableHLO text,
`Lowering.compile` makes the `Program`, and `Program.run` executes it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._base import config
from .._base.errors import DeviceError
from .._base.monitoring import COMPILE, LOWER, log_stage, timed
from .._ir.avals import ShapedArray, typeof_value
from .._ir.dtypes import ExtendedDtype
from .._ir.effects import Effects
from .._ir.jaxpr import Jaxpr, jaxprs_in, memoized
from . import memory
from .array import Array, deleted, move, put, wrap_all
from .callbacks import observed
from .compile import JaxRuntimeError, compile_text
from .devices import Device, default_device
from .host_values import operand
from .lower import Argument, lower_module, result_info
from .mesh import Mesh, PartitionSpec, axes_of
from .pipeline import Overrides, pipeline
from .placement import Key, aval_of, is_committed, key_for, sharding_of
from .sharding import CompilerSharding, HloSharding, NamedSharding, Sharding, from_hlo, interned, single_device
from .text import Module, quoted
from .transfer import result_handler
from .watch import Watch, watch, watched


class Plan(NamedTuple):
    """The devices of a program, whether they are committed, the sharding of each argument, and the mesh (or None)."""

    devices: tuple[Device, ...]
    committed: bool
    shardings: tuple[Sharding, ...]
    mesh: Mesh | None


def plan(
    keys: Sequence[Key],
    *,
    device: Device | None = None,
    mesh: Mesh | None = None,
    shardings: Sequence[Sharding | None] | None = None,
) -> Plan:
    """Chooses the devices of a program, and the shardings of its arguments, from the keys of the arguments.

    `device`, `mesh` and `shardings` (one for each argument, or None) are requirements of the program; arguments with a
    sharding are moved to it. They and the committed arguments must agree on the devices, else a `DeviceError` is
    raised. Without either, the flag `default_device` decides, and without that the devices of the first argument.
    """
    if device is not None:
        return Plan((device,), True, (single_device(device),) * len(keys), None)
    asked: Sequence[Sharding | None] = shardings or [None] * len(keys)
    demands: dict[tuple[Device, ...], str] = {}
    for key, wanted in zip(keys, asked, strict=True):
        if wanted is not None:
            demands.setdefault(wanted.devices, "the program")
        elif is_committed(key):
            demands.setdefault(sharding_of(key).devices, aval_of(key).short)
    if mesh is not None:
        demands.setdefault(tuple(mesh.devices.flat), "the program")
    if len(demands) > 1:
        where = "; ".join(f"{who} on {list(devices)}" for devices, who in demands.items())
        raise DeviceError(
            f"arguments are committed to different devices: {where}",
            instead="device_put all of them to one place first",
            devices=list(demands),
        )
    if demands:
        devices = next(iter(demands))
    elif config.current().default_device is not None or not keys:
        devices = (default_device(),)
    else:
        devices = sharding_of(keys[0]).devices
    if len(devices) == 1:
        return Plan(devices, bool(demands), (single_device(devices[0]),) * len(keys), None)
    if mesh is None:
        known = [s for s in (*asked, *map(sharding_of, keys)) if isinstance(s, NamedSharding)]
        mesh = known[0].mesh if known else None
    whole: Sharding = (
        interned(NamedSharding(mesh, PartitionSpec()))
        if mesh is not None
        else interned(CompilerSharding(devices, HloSharding.replicate()))
    )
    placed = []
    for key, wanted in zip(keys, asked, strict=True):
        here = sharding_of(key)
        placed.append(wanted if wanted is not None else here if here.devices == devices else whole)
    return Plan(devices, True, tuple(placed), mesh)


def mesh_of(jaxpr: Jaxpr) -> Mesh | None:
    """The first mesh among the parameters of the equations of `jaxpr`, at any depth; None if there is none."""

    def find() -> Mesh | None:
        for eqn in jaxpr.eqns:
            if "mesh" in eqn.params:
                return eqn.params["mesh"]
            if eqn.primitive.effects is not None:  # as for all primitives that hold Jaxprs
                for inner in jaxprs_in(eqn.params):
                    found = mesh_of(inner)
                    if found is not None:
                        return found
        return None

    return memoized(jaxpr, "mesh", find)


class Program:
    """A loaded executable, with everything that a call needs computed beforehand."""

    __slots__ = (
        "arrange", "executable", "execute", "handlers", "out_avals", "out_keys", "out_shardings", "single", "text",
        "watch",
    )  # fmt: skip

    def __init__(
        self,
        executable: Any,
        text: str,
        where: Plan,
        in_keys: Sequence[Key],
        out_avals: Sequence[ShapedArray],
        out_shardings: Sequence[Sharding | None] | None = None,
        watch: Watch | None = None,
    ):
        self.executable = executable
        self.execute = executable.execute_sharded
        self.text = text
        #: for each argument the sharding it must be moved to, or None; empty if no argument must be moved
        self.arrange = [
            None if _same_layout(key, sharding) else sharding
            for key, sharding in zip(in_keys, where.shardings, strict=True)
        ]
        if not any(self.arrange):
            self.arrange = []
        shardings = _output_shardings(executable, where, out_avals)
        if out_shardings is not None:
            shardings = [asked or found for asked, found in zip(out_shardings, shardings, strict=True)]
        self.out_avals = list(out_avals)
        self.out_shardings = shardings
        self.out_keys = [key_for(a, s, where.committed) for a, s in zip(out_avals, shardings, strict=True)]
        self.handlers = [result_handler(a.physical, s) for a, s in zip(out_avals, shardings, strict=True)]
        self.watch = watch
        #: whether the fast path may call `execute` instead of `run`: there is one result and no `Watch`
        self.single = len(self.out_avals) == 1 and watch is None

    def adopt(self, x: Any, i: int, fresh: bool = False) -> Array:
        """Argument number `i`, a number or NumPy array, as an array with the sharding that the program needs.

        With `fresh` the array has a buffer of its own, which may be donated.
        """
        target = self.arrange[i] if self.arrange else None
        if target is None and not fresh:
            return operand(x)
        aval = typeof_value(x)
        assert aval is not None
        return put(np.asarray(x, aval.dtype), aval, target, committed=target is not None)

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Executes the program; `arrays` must have the keys that it was lowered for."""
        if self.arrange:
            arrays = [a if s is None else move(a, s) for a, s in zip(arrays, self.arrange, strict=True)]
        if self.watch is not None:
            self.watch.before()
        try:
            bufs = self.execute([a._buf for a in arrays]).consume_with_handlers(self.handlers)
        except (JaxRuntimeError, ValueError, RuntimeError):
            explain_failure(arrays)
            raise
        outs = wrap_all(bufs, self.out_avals, self.out_keys)
        if self.watch is not None:
            self.watch.after(arrays, outs)
        return outs


def _same_layout(key: Key, sharding: Sharding) -> bool:
    here = sharding_of(key)
    if here == sharding:
        return True
    ndim = aval_of(key).physical.ndim
    return here.devices == sharding.devices and here.hlo(ndim) == sharding.hlo(ndim)


def explain_failure(arrays: Sequence[Array], names: Sequence[str] | str = "an array") -> None:
    """Raises a `DeletedArrayError` if one of `arrays`, the arguments of a failed run, is deleted.

    Raises an `OutOfMemoryError` if the error that is handled says so. `names` are the names of the arguments, or one
    description for all.
    """
    error = sys.exc_info()[1]
    if error is not None:
        memory.explain(error)
    for i, array in enumerate(arrays):
        if array.is_deleted():
            raise deleted(array, names if isinstance(names, str) else f"argument {names[i]}") from None


def _output_shardings(executable: Any, where: Plan, out_avals: Sequence[ShapedArray]) -> list[Sharding]:
    if len(where.devices) == 1 or not out_avals:
        return [single_device(where.devices[0])] * len(out_avals)
    reported = executable.get_output_shardings() or []
    result = []
    for proto, aval in zip(reported, out_avals, strict=True):
        hlo, ndim = HloSharding.from_proto(proto), aval.physical.ndim
        # If an argument has an equal sharding, its spec is reported: several specs can describe one HloSharding.
        alike = (s for s in where.shardings if isinstance(s, NamedSharding) and len(s.spec) == ndim)
        same = next((s for s in alike if s.hlo(ndim) == hlo), None)
        result.append(interned(same) if same else from_hlo(where.devices, hlo, ndim, where.mesh))
    return result


class Lowering(NamedTuple):
    """A program as StableHLO text, with everything that is needed to compile and call it."""

    text: str
    where: Plan
    keys: Sequence[Key]
    out_avals: Sequence[ShapedArray]
    out_shardings: Sequence[Sharding | None] | None
    module: Module
    effects: Effects
    #: writes the text again, with the user's name scopes and source lines as locations
    located: Callable[[], tuple[str, Module]]
    name: str
    watch: Watch | None
    #: compiler options from `pipeline`
    advice: Overrides

    def compile(self, overrides: Overrides = ()) -> Program:
        """Compiles the program, or loads it from the disk cache; `overrides` are compiler options of the user."""
        text, module = self.text, self.module
        private = bool(module.callbacks or module.kept)
        if private:  # the text refers to objects of its module, so both must come from the same call
            text, module = self.located()
        types = ", ".join(aval_of(key).short for key in self.keys)
        log_stage("Compiling jit(%s) with global shapes and types [%s]", self.name, types)
        with timed(COMPILE, "XLA compilation of jit(%s)", self.name):
            executable = compile_text(
                text,
                self.where.devices,
                located=lambda: self.located()[0],
                shardy=module.shardy,
                outputs=len(self.out_avals),
                overrides=overrides,
                advice=self.advice,
                callbacks=module.callbacks,
                private=private,
            )
        for tell in module.when_compiled:
            tell()
        program = Program(executable, self.text, self.where, self.keys, self.out_avals, self.out_shardings, self.watch)
        if self.effects or module.callbacks:
            program.execute = observed(executable, self.effects)
        return program


def lower(
    jaxpr: Jaxpr,
    name: str,
    keys: Sequence[Key],
    *,
    device: Device | None = None,
    donated: frozenset[int] = frozenset(),
    results: Sequence[str] = (),
    in_shardings: Sequence[Sharding | None] | None = None,
    out_shardings: Sequence[Sharding | None] | None = None,
    portable: bool = False,
) -> Lowering:
    """Lowers `jaxpr` for arguments (constants first) with these keys.

    `donated` are the indices of the arguments whose buffers outputs may reuse; `results` are the names of the outputs.
    `in_shardings` and `out_shardings` are the required shardings of arguments and outputs. In a `portable` text
    operations such as `sort` have the form that is good on all platforms.
    """
    where = plan(keys, device=device, mesh=mesh_of(jaxpr), shardings=in_shardings)
    if watched():
        donated = frozenset()
    write = functools.partial(module_text, jaxpr, name, where, keys, donated, results, out_shardings, portable)
    with timed(LOWER, "lowering of jit(%s)", name):
        text, module = write()
    located = functools.partial(write, locations=True)
    avals = [v.aval for v in jaxpr.outvars]
    advice = pipeline(jaxpr) if where.devices[0].platform == "cpu" else ()
    return Lowering(
        text, where, keys, avals, out_shardings, module, jaxpr.effects, located, name, watch(jaxpr, name), advice
    )


def module_text(
    jaxpr: Jaxpr,
    name: str,
    where: Plan,
    keys: Sequence[Key],
    donated: frozenset[int] = frozenset(),
    results: Sequence[str] = (),
    out_shardings: Sequence[Sharding | None] | None = None,
    portable: bool = False,
    *,
    locations: bool = False,
) -> tuple[str, Module]:
    """The StableHLO text of a program, and the `Module` that it was written with."""
    asked_for = [s for s in (*where.shardings, *(out_shardings or ())) if s is not None]
    shardy = where.mesh is not None and all(
        isinstance(s, NamedSharding) and s.mesh.lies_like(where.mesh) for s in asked_for
    )
    module = Module(where.devices, shardy or len(where.devices) == 1, where.mesh, locations, portable)
    arguments = []
    for i, (key, sharding) in enumerate(zip(keys, where.shardings, strict=True)):
        attributes = ["jax.buffer_donor = true"] if i in donated else []
        if len(where.devices) > 1:
            attributes.append(sharding_attribute(module, sharding, aval_of(key).physical.ndim, shardy))
        arguments.append(Argument(aval_of(key), tuple(attributes)))
    attributes_out: list[tuple[str, ...]] = []
    for i, v in enumerate(jaxpr.outvars):
        given = [result_info(results[i])] if results else []
        asked = out_shardings[i] if out_shardings else None
        if asked is not None and len(where.devices) > 1:
            given.append(sharding_attribute(module, asked, v.aval.physical.ndim, shardy))
        attributes_out.append(tuple(given))
    text = lower_module(
        jaxpr,
        f"jit_{name}",
        arguments=arguments,
        result_attributes=attributes_out,
        module=module,
    )
    return text, module


def sharding_attribute(module: Module, sharding: Sharding, ndim: int, shardy: bool) -> str:
    """The attribute for the sharding of an argument or result, for Shardy or for GSPMD."""
    if not shardy or not isinstance(sharding, NamedSharding):
        return f"mhlo.sharding = {quoted(repr(sharding.hlo(ndim)))}"
    return f"sdy.sharding = #sdy.sharding<{spec_text(module, sharding.mesh, sharding.spec, ndim)}>"


def spec_text(module: Module, mesh: Mesh, spec: PartitionSpec, ndim: int) -> str:
    """A PartitionSpec for an array with `ndim` axes in Shardy's syntax: ``@mesh, [{"i"}, {}]``."""
    symbol = module.mesh_symbol(mesh)
    entries = (*spec, *((None,) * (ndim - len(spec))))
    dims = ", ".join("{" + ", ".join(quoted(str(axis)) for axis in axes_of(entry)) + "}" for entry in entries)
    return f"@{symbol}, [{dims}]"


def donatable(donated: Sequence[int], avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> frozenset[int]:
    """The donated arguments whose buffers can be reused: each needs an output of its own with the same type."""
    free: dict[tuple[Any, ...], int] = {}
    for aval in outs:
        free[_layout(aval)] = free.get(_layout(aval), 0) + 1
    usable = []
    for i in donated:
        kind = _layout(avals[i])
        if free.get(kind, 0):
            free[kind] -= 1
            usable.append(i)
    return frozenset(usable)


def _layout(aval: ShapedArray) -> tuple[Any, ...]:
    dtype = aval.dtype
    return (aval.physical.shape, aval.physical.dtype) if isinstance(dtype, ExtendedDtype) else (aval.shape, dtype)
