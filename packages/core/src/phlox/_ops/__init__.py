"""The primitives: one folder per kind, one file per family; all rules of a primitive are in one place."""

import functools

from .._ir.primitive import Primitive, primitives
from .._xla import eager as eager  # installs the function that executes operations when no trace is current
from . import cpu as cpu  # provides the forms of primitives for CPUs


def all_primitives() -> dict[str, Primitive]:
    """All primitives by name, including those of modules that were not imported yet.

    Returns:
      A new dict.

    >>> len(all_primitives()) > 100
    True
    """
    _import_all()
    return primitives()


@functools.cache
def _import_all() -> None:
    import importlib
    import pkgutil

    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        importlib.import_module(module.name)


#: primitives whose object in JAX is not named like the primitive
_JAX_NAMES = {
    "remat_p": "remat2",
    "add_jaxvals_p": "add_any",
    "linear_solve_p": "custom_linear_solve",
    "sharding_constraint_p": "reshard",
}


def primitive_of_jax(name: str) -> Primitive | None:
    """The primitive that JAX exports under this name.

    Args:
      name: such as ``"sin_p"``.

    Returns:
      A `Primitive`; None when there is none.

    >>> primitive_of_jax("sin_p").name, primitive_of_jax("sin")
    ('sin', None)
    """
    plain = _JAX_NAMES.get(name, name.removesuffix("_p"))
    known = all_primitives() if name.endswith("_p") else {}
    return known.get(plain) or known.get(plain.replace("scatter_", "scatter-"))


def jax_names() -> list[str]:
    """All names for which `primitive_of_jax` returns a primitive.

    Returns:
      A sorted list.

    >>> "sin_p" in jax_names()
    True
    """
    return sorted([name.replace("-", "_") + "_p" for name in all_primitives()] + list(_JAX_NAMES))
