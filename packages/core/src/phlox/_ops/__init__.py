"""The primitives: one file for each family, all rules of an operation together."""

import functools

from .._ir.primitive import Primitive, primitives


def all_primitives() -> dict[str, Primitive]:
    """All primitives by name, those of files that nothing has asked for yet as well."""
    _import_all()
    return primitives()


@functools.cache
def _import_all() -> None:
    import importlib
    import pkgutil

    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
