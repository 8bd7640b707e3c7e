"""`export`: a jitted function, lowered, that can be saved to a file and called by other processes.

The program is stored in StableHLO's portable form, which other versions of jaxlib can read; for symbolic shapes and
several devices as a Jaxpr, since that form has no meshes. Closed-over arrays are constants in it. `format.py` describes
the file format.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..._base import config, pytree
from ..._base.errors import DeviceError, ExportError, OptionError, TreeError, UnsupportedError
from ..._base.pytree import PyTreeDef, flatten
from ..._ir.avals import ShapedArray
from ..._ir.effects import Effects
from ..._ir.jaxpr import ClosedJaxpr, Jaxpr, Literal, prune, with_literals
from ..._ops.control.exported import ExportedProgram, call_exported, check_platform
from ..._ops.host.ffi import FfiEffect
from ..._xla import analysis as inspection, devices
from ..._xla.array import physical
from ..._xla.bindings import parse
from ..._xla.embed import targets
from ..._xla.host_values import as_array
from ..._xla.mesh import Mesh
from ..._xla.platforms import platform_name
from ..._xla.program import lower
from ..._xla.sharding import NamedSharding
from ..derivatives.custom import custom_vjp
from ..derivatives.differentiate import vjp
from ..jit.jit import jit
from ..jit.programs import ShapeDtypeStruct, constrained, struct_of
from ..jit.stages import Traced, Wrapped
from .polymorphic import PolymorphicProgram, for_other_processes, leaf_paths, scope_of
from .shardings import Shardings, over_mesh, shardings_of

minimum_supported_calling_convention_version = 1
maximum_supported_calling_convention_version = 1

# Targets of these names keep their meaning: files that were exported long ago call them.
#: Prefixes of custom call targets that are stable across versions of jaxlib.
_STABLE = ("lapack_", "cusolver_", "hipsolver_", "cublas_", "cu_", "hip_", "cpu_csr_sparse_dense_ffi")


@dataclasses.dataclass(frozen=True)
class DisabledSafetyCheck:
    """A check that `export`, or calls of an exported function, skip; made by `platform` and `custom_call`."""

    _impl: str

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Allows an exported function to run on other platforms than those it was exported for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Allows exporting a function that calls this foreign function, which is not known to be stable.

        Args:
          target_name: the name under which the foreign function is registered.

        Returns:
          A check, for `export`.

        >>> DisabledSafetyCheck.custom_call("half")
        custom_call:half
        """
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The name of the allowed foreign function, or None for another check."""
        kind, _, target = self._impl.partition(":")
        return target if kind == "custom_call" else None

    def __str__(self) -> str:
        return self._impl

    __repr__ = __str__


@dataclasses.dataclass(frozen=True, eq=False)
class Exported:
    """A function lowered for arguments of certain types, which does not depend on the process that exported it.

    Attributes:
      fun_name: the name of the function.
      in_tree, in_avals: the treedef of (args, kwargs), and the types of its leaves.
      out_tree, out_avals: the treedef of the result, and the types of its leaves.
      platforms: the platforms it may run on.
      nr_devices: how many devices it runs on.
      programs: the program for each platform, in StableHLO's portable form; empty if it is `polymorphic`.
      module_kept_var_idx: indices of the leaves that the program reads.
      calling_convention_version: version of the program's calling convention; see `phlox.export`.
      disabled_safety_checks: checks that are skipped.
      ordered_effects: always empty, because functions with ordered effects cannot be exported.
      unordered_effects: the effect of foreign functions with side effects, or nothing.
      uses_global_constants: whether it was exported for symbolic shapes.
      polymorphic: the program of a function of symbolic shapes or over several devices, which is lowered when it is
        called; else None.
    """

    fun_name: str
    in_tree: PyTreeDef
    in_avals: tuple[ShapedArray, ...]
    out_tree: PyTreeDef
    out_avals: tuple[ShapedArray, ...]
    platforms: tuple[str, ...]
    disabled_safety_checks: tuple[DisabledSafetyCheck, ...]
    programs: Mapping[str, bytes]
    module_kept_var_idx: tuple[int, ...]
    # A function, as the derivative is exported only when somebody asks for it.
    _get_vjp: Callable[[Exported], Exported] | None
    nr_devices: int = 1
    # As JAX calls them; their meshes have no devices.
    _in_named_shardings: tuple[NamedSharding | None, ...] = ()
    _out_named_shardings: tuple[NamedSharding | None, ...] = ()
    calling_convention_version: int = maximum_supported_calling_convention_version
    ordered_effects: tuple[Any, ...] = ()
    unordered_effects: tuple[Any, ...] = ()
    uses_global_constants: bool = False
    polymorphic: PolymorphicProgram | None = None

    @property
    def mlir_module_serialized(self) -> bytes:
        """The program for the platform of this process, or else for the first one; empty if it is `polymorphic`."""
        first = self.programs.get(self.platforms[0], b"")
        return self.programs.get(default_export_platform(), first)

    @property
    def in_shardings_hlo(self) -> tuple[None, ...]:
        """None for each argument, as in JAX: see `in_shardings_jax`."""
        return (None,) * len(self.in_avals)

    @property
    def out_shardings_hlo(self) -> tuple[None, ...]:
        """None for each result, as in JAX: see `out_shardings_jax`."""
        return (None,) * len(self.out_avals)

    def in_shardings_jax(self, mesh: Mesh) -> tuple[NamedSharding | None, ...]:
        """The shardings of arguments over the devices of `mesh`; None for those that were not committed to devices.

        Raises:
          DeviceError: `mesh` has other axes than the mesh that the function was exported with.
        """
        return over_mesh(self._in_named_shardings, mesh)

    def out_shardings_jax(self, mesh: Mesh) -> tuple[NamedSharding | None, ...]:
        """The shardings of results over the devices of `mesh`; None where the function does not say.

        Raises:
          DeviceError: `mesh` has other axes than the mesh that the function was exported with.
        """
        return over_mesh(self._out_named_shardings, mesh)

    def mlir_module(self, serialized: bool = True) -> Any:
        """The program.

        Args:
          serialized: return text instead of an object of MLIR's Python bindings.

        Returns:
          StableHLO as text, or an MLIR module.

        >>> exported = export(phlox.jit(lambda x: 2 * x))(1.0)
        >>> "stablehlo.multiply" in exported.mlir_module()
        True
        """
        # There is no text: it depends on the shapes and devices of a call.
        if self.polymorphic is not None:
            raise UnsupportedError(
                f"mlir_module of {self.fun_name}, which was exported for symbolic shapes or several devices: each call "
                "lowers it",
                instead="phlox.jit(exported.call).lower(*args).as_text()",
            )
        text = inspection.from_portable(self.mlir_module_serialized)
        return text if serialized else parse(text)

    def has_vjp(self) -> bool:
        """Whether the derivative is available: always after `export`; after `deserialize`, if it was serialized."""
        return self._get_vjp is not None

    def vjp(self) -> Exported:
        """The exported derivative, in reverse mode.

        Returns:
          An `Exported`. It takes the leaves of the arguments and then a cotangent for each leaf of the result, as
          positional arguments, and returns a tuple with a cotangent for each leaf of the arguments. Cotangents of
          integers and bools have dtype float0.

        Raises:
          ExportError: the derivative was not serialized.

        >>> exported = export(phlox.jit(lambda x: 2 * x))(1.0)
        >>> [float(ct) for ct in exported.vjp().call(3.0, 1.0)]
        [2.0]
        """
        if self._get_vjp is None:
            raise ExportError(
                f"the exported function {self.fun_name} has no derivative",
                instead="exported.serialize(vjp_order=1), where it was serialized",
            )
        return self._get_vjp(self)

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The function as bytes, for `deserialize`.

        Args:
          vjp_order: derivatives up to this order are serialized, too.

        Returns:
          A bytearray.

        Raises:
          ExportError: arguments or results contain a container of a class that is not registered with
            `register_pytree_node_serialization`.

        >>> exported = export(phlox.jit(lambda x: 2 * x))(1.0)
        >>> type(exported.serialize()).__name__
        'bytearray'
        """
        from .format import serialize

        return serialize(self, vjp_order)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function, also inside of `jit` and `grad` (reverse mode).

        Args:
          *args, **kwargs: arguments of the structure and types that it was exported for.

        Returns:
          The result of the function.

        Raises:
          DeviceError: the function was not exported for this platform, or for more devices than there are.
          DtypeError: an argument has another dtype.
          ShapeError: an argument has another shape.
          TreeError: the arguments have another structure.

        >>> exported = export(phlox.jit(lambda x: 2 * x))(1.0)
        >>> float(exported.call(3.0))
        6.0
        """
        # The platform of one program for numbers is known where it is lowered.
        if self.polymorphic is not None and not self._any_platform:
            check_platform(self.fun_name, self.platforms, default_export_platform())
        if (count := devices.device_count()) < self.nr_devices:
            raise DeviceError(
                f"Function {self.fun_name} was exported for {self.nr_devices} devices, and there are {count}",
                instead="export it over a smaller mesh, or run it where there are more devices",
            )
        leaves, tree = flatten((args, kwargs))
        what = (
            f"The invocation args and kwargs must have the same pytree structure as when {self.fun_name} was exported"
        )
        pytree.check_same(self.in_tree, tree, what, kind=TreeError)
        return self.out_tree.unflatten(self._flat_call(*leaves))

    # Cached, so that all calls share one custom function, and with it one trace.
    @functools.cached_property
    def _flat_call(self) -> Callable[..., Any]:
        run = self.polymorphic if self.polymorphic is not None else self._embedded()
        if self.nr_devices > 1:
            run = self._over_devices(run)

        # The program is a black box to transformations; its derivative is another exported program.
        @custom_vjp
        def flat(*leaves: Any) -> list[Any]:
            return run(*leaves)

        def forward(*leaves: Any) -> tuple[list[Any], tuple[Any, ...]]:
            return flat(*leaves), leaves

        def backward(leaves: tuple[Any, ...], cotangents: list[Any]) -> tuple[Any, ...]:
            return self.vjp().call(*leaves, *cotangents)

        flat.defvjp(forward, backward)
        return flat

    def _embedded(self) -> Callable[..., list[Any]]:
        program = ExportedProgram(
            self.fun_name,
            self.programs,
            self._any_platform,
            leaf_paths(self.in_tree),
            self.in_avals,
            self.out_avals,
            self.module_kept_var_idx,
            frozenset(self.unordered_effects),
        )
        return functools.partial(call_exported.bind, exported=program)

    @property
    def _any_platform(self) -> bool:
        return DisabledSafetyCheck.platform() in self.disabled_safety_checks

    def _over_devices(self, run: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
        """`run`, with arguments and results split as they were when it was exported."""

        def split(*leaves: Any) -> list[Any]:
            return constrained(run(*constrained(leaves, self._in_named_shardings)), self._out_named_shardings)

        # Under `jit`, where shardings without devices get those of the arguments.
        split.__name__ = self.fun_name
        return jit(split)

    def __str__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"


def default_export_platform() -> str:
    """The platform that `export` exports for by default: 'cpu', 'cuda', 'rocm' or 'tpu'.

    Returns:
      A string.

    >>> default_export_platform()
    'cpu'
    """
    return platform_name(devices.default_backend())


def export(
    fun_jit: Wrapped[..., Any],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
    _override_lowering_rules: None = None,
) -> Callable[..., Exported]:
    """Lowers a jitted function to a form that can be saved, and called by other processes.

    Args:
      fun_jit: a function that `jit` returned. If it has ``sizes``, the exported function takes all sizes up to the
        bucket of the arguments, and compiles one program for them.
      platforms: the platforms it may run on, such as ``("cpu", "cuda")``; None for the platform of this process.
      disabled_checks: checks to skip.
      _override_lowering_rules: must be None.

    Returns:
      A function that takes arguments as `fun_jit` does (arrays or `ShapeDtypeStruct`s) and returns the `Exported` for
      arguments of these types.

    Raises:
      ExportError: in a call, when `fun_jit` calls Python, or foreign functions that are not known to be stable.
      OptionError: `fun_jit` is not jitted, or `platforms` is empty.
      UnsupportedError: `_override_lowering_rules` is given, or one of `platforms` lacks an operation.

    >>> exported = export(phlox.jit(lambda x: jnp.sin(x) * 2))(phlox.ShapeDtypeStruct((3,), "float32"))
    >>> again = phlox.export.deserialize(exported.serialize(vjp_order=1))
    >>> phlox.grad(lambda x: again.call(x).sum())(jnp.zeros(3))
    Array([2., 2., 2.], dtype=float32)
    """
    if not isinstance(fun_jit, Wrapped):
        raise OptionError(
            f"Function to be exported must be the result of `jit`, got {fun_jit!r}", instead="export(phlox.jit(f))"
        )
    if _override_lowering_rules is not None:
        raise UnsupportedError("export: _override_lowering_rules", instead="primitives with the lower rules you want")
    targets = (default_export_platform(),) if platforms is None else tuple(map(platform_name, platforms))
    if not targets:
        raise OptionError("export: platforms is empty", instead="('cpu',)")

    def make(*args: Any, **kwargs: Any) -> Exported:
        return _export(fun_jit, args, kwargs, targets, tuple(disabled_checks))

    return make


def _export(
    fun_jit: Wrapped[..., Any],
    args: Any,
    kwargs: Any,
    platforms: tuple[str, ...],
    checks: tuple[DisabledSafetyCheck, ...],
    is_padded: bool = False,
) -> Exported:
    # A function with `sizes` (sized_jit.py) is traced for all sizes up to a bucket; its arguments are padded to that.
    trace = getattr(fun_jit, "_trace_for_export", None)
    # Before tracing, in which lengths of two scopes are only said to be different.
    scope_of([x for x in flatten((args, kwargs))[0] if isinstance(x, ShapeDtypeStruct)])
    traced = fun_jit.trace(*args, **kwargs) if trace is None else trace(*args, **kwargs)
    shardings, closed, name = shardings_of(traced), traced.jaxpr, traced.fun_name
    abstract, scope = shardings.without_devices(), scope_of(closed.in_avals)
    exported = functools.partial(
        Exported,
        name,
        traced.in_tree,
        tuple(closed.in_avals),
        traced.out_tree,
        tuple(closed.out_avals),
        platforms,
        checks,
        # The trace is held for the derivative, which is traced only when it is asked for.
        _get_vjp=lambda exported: _export_vjp(traced, shardings, exported),
        nr_devices=shardings.devices,
        _in_named_shardings=abstract.arguments,
        _out_named_shardings=abstract.results,
    )
    # Of symbolic shapes, or over several devices.
    if shardings.devices > 1 or scope is not None:
        _check_effects(name, closed.effects)
        # Rules of Python functions, and devices, cannot be written to a file.
        portable = for_other_processes(closed.replace(jaxpr=prune(closed.jaxpr)[0]), name)
        paths, is_padded = leaf_paths(traced.in_tree), is_padded or trace is not None
        return exported(
            programs={},
            # All leaves are kept, as the symbolic lengths are read from them.
            module_kept_var_idx=tuple(range(len(closed.in_avals))),
            unordered_effects=tuple(closed.effects),
            uses_global_constants=scope is not None,
            polymorphic=PolymorphicProgram(name, portable, closed.in_avals, closed.out_avals, paths, is_padded),
        )
    program, used = prune(_with_constants(closed))
    _check_effects(name, program.effects)
    used_indices = tuple(i for i, u in enumerate(used) if u)
    program = program.replace(invars=[program.invars[i] for i in used_indices])
    texts = {platform: _text(program, name, platform) for platform in platforms}
    # The text tells which foreign functions are called, also in inner programs.
    for text in dict.fromkeys(texts.values()):
        _check_targets(name, text, checks)
    return exported(
        programs={platform: inspection.portable(text) for platform, text in texts.items()},
        module_kept_var_idx=used_indices,
        unordered_effects=tuple(program.effects),
    )


def _text(program: Jaxpr, name: str, platform: str) -> str:
    """The program for a platform, which this process may lack."""
    with config.scope(device_context=None):  # a mesh for new arrays says nothing about the program
        return lower(program, name, [v.aval for v in program.invars], platform=platform).text


def _export_vjp(traced: Traced, shardings: Shardings, exported: Exported) -> Exported:
    """The exported derivative of an exported function."""
    tree, count = exported.in_tree, len(exported.in_avals)

    def flat(*leaves: Any) -> list[Any]:
        args, kwargs = tree.unflatten(leaves)
        return flatten(traced(*args, **kwargs))[0]

    def backward(*leaves_and_cotangents: Any) -> tuple[Any, ...]:
        leaves, cotangents = leaves_and_cotangents[:count], leaves_and_cotangents[count:]
        return vjp(flat, *leaves)[1](list(cotangents))

    backward.__name__ = f"{exported.fun_name}_vjp"
    # Arguments of the derivative: the leaves, then a cotangent for each result, split as that is.
    avals = (*exported.in_avals, *[a.tangent() for a in exported.out_avals])
    structs = [struct_of(a, s) for a, s in zip(avals, (*shardings.arguments, *shardings.results), strict=True)]
    is_padded = exported.polymorphic is not None and exported.polymorphic.is_padded
    fun = jit(backward, out_shardings=shardings.arguments) if shardings.devices > 1 else jit(backward)
    return _export(fun, structs, {}, exported.platforms, exported.disabled_safety_checks, is_padded)


def _with_constants(closed: ClosedJaxpr) -> Jaxpr:
    """The Jaxpr with closed-over arrays as literals."""
    constants = {
        # Keys as the integers that they are stored as, which MLIR can write.
        v: Literal(np.asarray(physical(as_array(c))), v.aval)
        for v, c in zip(closed.jaxpr.constvars, closed.consts, strict=True)
    }
    return with_literals(closed.jaxpr, constants).replace(constvars=[])


def _check_effects(name: str, effects: Effects) -> None:
    """Raises for callbacks: other processes do not have the Python functions that they call."""
    strange = [effect for effect in effects if not isinstance(effect, FfiEffect)]
    if strange:
        raise ExportError(
            f"export of {name}, which has effects: {', '.join(map(repr, strange))}",
            instead="a function without callbacks and prints",
            effects=effects,
        )


def _check_targets(name: str, text: str, checks: Sequence[DisabledSafetyCheck]) -> None:
    """Raises for custom calls of foreign functions that other processes may lack, or have in another version."""
    allowed = {check.is_custom_call() for check in checks}
    strange = {t for t in targets(text) if t not in allowed and not t.startswith(_STABLE)}
    # "ALL" is JAX's word for any target.
    if strange and "ALL" not in allowed:
        raise ExportError(
            f"{name} calls foreign functions that other processes may not have: {', '.join(sorted(strange))}",
            instead=f"disabled_checks=[DisabledSafetyCheck.custom_call({sorted(strange)[0]!r})] if they do",
            targets=sorted(strange),
        )
