"""Optax's source with other imports, as code objects; compiled once and stored in phlox's cache.

The imports are changed in the syntax tree. (Editing text would be fragile; replacing ``__import__`` for these modules
would not survive pickling by value.) Line numbers do not change, so tracebacks and `inspect` show optax's own files.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib.util
import marshal
from types import CodeType

from phlox import cache

#: The packages that the copy imports instead.
ROOTS = {
    "jax": __package__ + ".jax",
    "optax": __package__ + ".optax",
}


def code_of(source: bytes, path: str) -> CodeType:
    """The code object of a module of optax, from its `source`, which was read from `path`."""
    key = _cache_key(source, path)
    found = cache.load(key)
    if found is not None:
        with contextlib.suppress(ValueError, EOFError, TypeError):
            return marshal.loads(found)
    code = compile(rewritten(source), path, "exec", dont_inherit=True)
    cache.store(key, marshal.dumps(code))
    return code


def rewritten(source: bytes | str) -> ast.Module:
    """The syntax tree of `source` with its imports changed.

    >>> print(ast.unparse(rewritten("import jax.numpy as jnp")))
    import phlox_optim._vendor.jax.numpy as jnp
    """
    return ast.fix_missing_locations(_Rewriter().visit(ast.parse(source)))


def _moved(module: str) -> str | None:
    """The private name of a module, or None if it belongs to neither jax nor optax."""
    root, dot, rest = module.partition(".")
    return ROOTS[root] + dot + rest if root in ROOTS else None


class _Rewriter(ast.NodeTransformer):
    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        return [ast.copy_location(statement, node) for alias in node.names for statement in self._import(alias)]

    def _import(self, alias: ast.alias) -> list[ast.stmt]:
        moved = _moved(alias.name)
        if moved is None:
            return [ast.Import([alias])]
        if alias.asname:
            return [ast.Import([ast.alias(moved, alias.asname)])]
        # "import jax.scipy.special" loads the submodule and binds the name jax.
        root = alias.name.partition(".")[0]
        bind = ast.Import([ast.alias(ROOTS[root], root)])
        return [bind] if root == alias.name else [ast.Import([ast.alias(moved)]), bind]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        moved = _moved(node.module or "") if node.level == 0 else None
        return node if moved is None else ast.copy_location(ast.ImportFrom(moved, node.names, 0), node)


def _cache_key(source: bytes, path: str) -> str:
    digest = hashlib.sha256(_this_file())
    # Part of the cache key, because code objects contain the path of their file and depend on the Python version.
    for part in (importlib.util.MAGIC_NUMBER, path.encode(), source):
        digest.update(hashlib.sha256(part).digest())
    return "optax-" + digest.hexdigest()


def _this_file() -> bytes:
    """The source of this file, part of cache keys: another version of it changes sources in another way."""
    loader = globals().get("__loader__")
    try:
        return loader.get_data(__file__) if loader is not None else b""
    except (OSError, AttributeError):
        return b""
