"""Paths in nested dicts of arrays: naming, matching, partition and merge of parameters and state.

A path is a tuple of strings; as text its parts are joined by dots, as in PyTorch: ``blocks.0.attention.query``. This
module does not import layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from phlox.errors import ArgumentError, TreeError
from phlox.extend import path_matcher

#: a placeholder in the shape of a variable for the number of examples, the argument `batch` of `init_state`
BATCH = -1

Path = tuple[str, ...]
Tree = dict[str, Any]
#: Selects paths: a glob such as ``"*/bias"``, several globs, or a function of the dotted path.
Pattern = str | tuple[str, ...] | list[str] | Callable[[str], bool]


def text(path: Path) -> str:
    """A path with its parts joined by dots."""
    return ".".join(path)


def leaves(tree: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """(path, leaf) of each value in nested dicts that is not a dict, in order."""
    if isinstance(tree, Mapping):
        for name, part in tree.items():
            yield from leaves(part, (*path, str(name)))
    else:
        yield path, tree


def get(tree: Any, path: Path) -> Any:
    """The value at `path` of nested dicts, or an empty dict if there is none."""
    for name in path:
        if not isinstance(tree, Mapping):
            return {}
        tree = tree.get(name, {})
    return tree


def put(tree: Tree, path: Path, value: Any) -> None:
    """Sets `value` at `path` of nested dicts; missing dicts are created."""
    *head, last = path
    for name in head:
        tree = tree.setdefault(name, {})
    tree[last] = value


def nested(items: Mapping[Path, Any]) -> Tree:
    """Nested dicts from a mapping of paths to values."""
    tree: Tree = {}
    for path, value in items.items():
        put(tree, path, value)
    return tree


def partition(params: Any, pattern: Pattern) -> tuple[Tree, Tree]:
    """Separates the parameters that `pattern` matches from the others.

    Args:
      params: nested dicts of arrays, as `Layer.init` makes them.
      pattern: a glob over paths (``"*/bias"`` or ``"*.bias"``), a part (``"encoder"`` means all below it), several of
        them, or a function that is given the dotted path of a leaf.

    Returns:
      Two trees of nested dicts: the matching parameters, and the rest. `merge` joins them again. A function can be
      differentiated with respect to the first tree only.

    Raises:
      ArgumentError: the pattern matches nothing, so it is probably misspelt.

    >>> trained, frozen = partition({"body": {"weight": 1.0}, "head": {"weight": 2.0, "bias": 3.0}}, "head")
    >>> trained, frozen
    ({'head': {'weight': 2.0, 'bias': 3.0}}, {'body': {'weight': 1.0}})
    >>> merge(trained, frozen)
    {'head': {'weight': 2.0, 'bias': 3.0}, 'body': {'weight': 1.0}}
    """
    meant = path_matcher(pattern)
    parts: tuple[dict[Path, Any], dict[Path, Any]] = ({}, {})
    for path, leaf in leaves(params):
        parts[not meant(text(path))][path] = leaf
    if not parts[0] and not callable(pattern):
        names = [text(path) for path in parts[1]]
        raise ArgumentError(
            f"no parameter is meant by the pattern {pattern!r}",
            instead=f"one that fits a path, for example {names[0]!r}" if names else "parameters that are not empty",
            pattern=pattern,
            paths=names,
        )
    return nested(parts[0]), nested(parts[1])


def merge(*trees: Any) -> Tree:
    """Merges nested dicts, such as those that `partition` returns.

    Raises `TreeError` if two trees have a value at the same path.

    >>> merge({"a": {"x": 1}}, {"a": {"y": 2}}, {"b": 3})
    {'a': {'x': 1, 'y': 2}, 'b': 3}
    """
    result: dict[Path, Any] = {}
    inner: set[Path] = set()  # the paths of dicts
    for tree in trees:
        for path, leaf in leaves(tree):
            above = [path[:n] for n in range(len(path))]
            if path in result or path in inner or any(parent in result for parent in above):
                raise TreeError(
                    f"merge: two trees have a value at {text(path)}",
                    instead="trees that partition took apart",
                    path=path,
                )
            result[path] = leaf
            inner.update(above)
    return nested(result)


def mask(params: Any, pattern: Pattern) -> Tree:
    """Nested dicts of bools, True where `pattern` matches a parameter, as ``optax.masked`` takes them.

    >>> mask({"weight": 1.0, "bias": 2.0}, "bias")
    {'weight': False, 'bias': True}
    """
    meant = path_matcher(pattern)
    return nested({path: bool(meant(text(path))) for path, _ in leaves(params)})


def labels(params: Any, rules: Mapping[str, str], default: str) -> Tree:
    """Nested dicts with a label for each parameter, as ``optax.multi_transform`` takes them.

    Args:
      params: nested dicts of arrays.
      rules: label by pattern; the first pattern that fits decides.
      default: the label of parameters that no pattern fits.

    >>> labels({"weight": 1.0, "bias": 2.0}, {"bias": "slow"}, "fast")
    {'weight': 'fast', 'bias': 'slow'}
    """
    return nested({path: first(rules, text(path), default) for path, _ in leaves(params)})


def first(rules: Mapping[str, Any], path: str, default: Any) -> Any:
    """The value of the first rule whose pattern matches this dotted path, else `default`."""
    return next((value for pattern, value in rules.items() if path_matcher(pattern)(path)), default)
