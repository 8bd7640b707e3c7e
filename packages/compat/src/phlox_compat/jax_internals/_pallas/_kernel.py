"""`kernel`: a function of references that runs on each core of a mesh, and `run_state`, which makes the references."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import phlox
from phlox import tree_util
from phlox.errors import ArgumentError, OptionError
from phlox.ref import new_ref

from ._call import interpreted
from ._control import new_refs
from ._specs import unspecified


def run_state(f: Callable[..., Any]) -> Callable[[Any], Any]:
    """A function from the values of references to those after `f`, which takes the references and returns None.

    Args:
      f: function of one tree of references.
    """

    def run(init: Any) -> Any:
        refs = tree_util.tree_map(_ref_of, init, is_leaf=_is_type)
        f(refs)
        return tree_util.tree_map(lambda ref: ref[...], refs, is_leaf=_is_ref)

    return run


def kernel(
    body: Any = None,
    out_type: Any = (),
    *,
    mesh: Any,
    scratch_types: Any = (),
    compiler_params: Any = None,
    interpret: Any = False,
    cost_estimate: Any = None,
    debug: bool = False,
    name: str | None = None,
    metadata: Mapping[str, str] | None = None,
) -> Any:
    """A function of arrays that runs a kernel on each core of a mesh.

    The kernel receives references to the whole inputs, to the outputs, and to scratch memory. The cores run one after
    the other, each with scratch memory of its own. `phlox.lax.axis_index` is the number of the core.

    Args:
      body: function of references, or a sequence of them, one for each mesh; without it, the result is a decorator.
      out_type: tree of arrays or `ShapeDtypeStruct`: the types of the outputs.
      mesh: a mesh of cores, such as `TensorCoreMesh`, or a sequence of them.
      scratch_types: types of memory, a sequence or a dict by name of the kernel's parameters.
      interpret: True, or the parameters of an interpreter.
      name: name of the operations in profiles.
      compiler_params, cost_estimate, debug, metadata: no meaning in interpret mode.

    Returns:
      A function of arrays that returns a tree like `out_type`.

    Raises:
      ArgumentError: there are not as many kernels as meshes.
      OptionError: in the call, the kernel returns a value, or is not to be interpreted.
    """
    if not callable(body) and not isinstance(body, Sequence):
        return functools.partial(
            kernel, out_type=out_type, mesh=mesh, scratch_types=scratch_types, interpret=interpret, name=name
        )
    bodies = list(body) if isinstance(body, Sequence) else [body]
    meshes = list(mesh) if isinstance(mesh, Sequence) else [mesh]
    if len(bodies) != len(meshes):
        raise ArgumentError(f"kernel: {len(bodies)} kernels for {len(meshes)} meshes", instead="one mesh for each")
    run = phlox.jit(functools.partial(_run, list(zip(bodies, meshes, strict=True)), out_type, scratch_types))
    kernel_name = name or str(getattr(bodies[0], "__name__", type(bodies[0]).__name__))

    return functools.wraps(bodies[0])(interpreted("kernel", run, kernel_name, interpret))


def _run(programs: Sequence[tuple[Callable[..., Any], Any]], out_type: Any, scratch_types: Any, *args: Any) -> Any:
    """The outputs after all cores of all meshes have run."""
    outputs = tree_util.tree_map(lambda x: unspecified(x.shape, x.dtype), out_type)
    state = args, outputs
    for body, mesh in programs:
        for core in range(mesh.size):
            state = _on_core(body, mesh, core, scratch_types, state)
    return state[1]


def _on_core(body: Callable[..., Any], mesh: Any, core: int, scratch_types: Any, state: Any) -> Any:
    """The inputs and outputs after one core has run.

    The axes of the mesh get their names by `vmap`: all cores run on the same state, and the result of this one counts.
    """

    def on_each(args: Any, outputs: Any) -> Any:
        arg_refs, out_refs = tree_util.tree_map(new_ref, (args, outputs))
        several = isinstance(out_refs, tuple | list)
        scratch = new_refs(scratch_types if isinstance(scratch_types, dict) else list(scratch_types))
        by_name = scratch if isinstance(scratch, dict) else {}
        result = body(*arg_refs, *(out_refs if several else [out_refs]), *([] if by_name else scratch), **by_name)
        if result is not None:
            raise OptionError(
                f"kernel: {getattr(body, '__name__', body)} should return None. It returns {type(result).__name__}",
                instead="out_ref[...] = result",
            )
        return tree_util.tree_map(lambda ref: ref[...], (arg_refs, out_refs), is_leaf=_is_ref)

    run = on_each
    for axis, size in reversed(mesh.shape.items()):
        run = phlox.vmap(run, in_axes=None, axis_name=axis, axis_size=size)
    results = run(*state)
    index = []
    for size in reversed(mesh.shape.values()):
        core, position = divmod(core, size)
        index.append(position)
    return tree_util.tree_map(lambda x: x[tuple(reversed(index))], results)


def _ref_of(x: Any) -> Any:
    return x.new() if _is_type(x) else new_ref(x)


def _is_type(x: Any) -> bool:
    return hasattr(x, "new")


def _is_ref(x: Any) -> bool:
    return hasattr(x, "swap")
