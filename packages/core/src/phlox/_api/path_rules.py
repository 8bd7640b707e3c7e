"""Leaves of trees selected by patterns of their paths, for the packages that train: rules by path.

A path is written with dots or slashes between its names: ``blocks.0.attention.query.weight`` or
``blocks/0/attention/query/weight``.
"""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Callable, Mapping
from typing import Any

from .._base.errors import ArgumentError
from .._base.pytree import keystr, tree_flatten_with_path
from .._xla.mesh import Mesh
from .._xla.partition_spec import PartitionSpec
from .._xla.sharding import NamedSharding

#: a glob such as ``"*/bias"``, several globs, or a function of the dotted path
Pattern = str | tuple[str, ...] | list[str] | Callable[[str], bool]


def path_matcher(pattern: Pattern) -> Callable[[str], bool]:
    """Returns a function of a dotted path: whether `pattern` matches it.

    Args:
      pattern: a glob, several globs, or a function of the dotted path. ``*`` matches any text, names are separated by
        dots or slashes. A glob matches a leaf by its whole path, or all leaves below a part: ``encoder`` and
        ``encoder/*`` are equivalent. ``*/bias`` also matches ``bias`` itself.

    Returns:
      The function.

    Raises:
      ArgumentError: the pattern is something else.

    >>> [path_matcher("*/bias")(path) for path in ("bias", "layers.0.bias", "layers.0.weight")]
    [True, True, False]
    """
    if callable(pattern):
        return pattern
    globs = (pattern,) if isinstance(pattern, str) else tuple(pattern) if isinstance(pattern, tuple | list) else (None,)
    if not all(isinstance(glob, str) for glob in globs):
        raise ArgumentError(
            f"a pattern is a glob, several globs, or a function of a path, got {pattern!r}",
            instead="for example '*/bias', or lambda path: path.endswith('bias')",
            pattern=pattern,
        )
    return _globs(tuple(glob for glob in globs if glob is not None))


@functools.lru_cache(maxsize=1000)
def _globs(globs: tuple[str, ...]) -> Callable[[str], bool]:
    dotted = [glob.replace("/", ".") for glob in globs]
    # ``*/bias`` shall match a leaf at the top, too.
    dotted += [glob[2:] for glob in dotted if glob.startswith("*.")]
    # A pattern that matches a container selects all that is below it.
    return lambda path: any(
        fnmatch.fnmatchcase(path, glob) or fnmatch.fnmatchcase(path, f"{glob}.*") for glob in dotted
    )


def path_text(path: Any) -> str:
    """Returns a path of `phlox.tree_util` with its names joined by dots.

    Args:
      path: a tuple of keys.

    Returns:
      A text.

    >>> [path_text(path) for path, _ in phlox.tree_util.tree_flatten_with_path({"a": [1, {"b": 2}]})[0]]
    ['a.0', 'a.1.b']
    """
    return keystr(path, simple=True, separator=".")


def values_by_path(what: str, tree: Any, rules: Mapping[Any, Any], default: Any = None, required: bool = False) -> Any:
    """Returns a tree with the value of the first rule that matches the path of each leaf.

    Args:
      what: the name of the caller, for errors.
      tree: a pytree.
      rules: value by pattern, see `path_matcher`; the first pattern that matches decides.
      default: the value of leaves that no pattern matches.
      required: whether such leaves are an error.

    Returns:
      A list of values, in the order of the leaves.

    Raises:
      ArgumentError: `rules` is no mapping, a pattern matches nothing, or a required rule is missing.

    >>> values_by_path("rates", {"a": 1, "b": 2}, {"a": 0.1}, default=0.5)
    [0.1, 0.5]
    """
    if not isinstance(rules, Mapping):
        raise ArgumentError(f"{what}: rules are a dict by pattern, got a {type(rules).__name__}", instead='{"*": ...}')
    matchers = [(pattern, path_matcher(pattern), value) for pattern, value in rules.items()]
    paths = [path_text(path) for path, _ in tree_flatten_with_path(tree)[0]]
    for pattern, matches, _ in matchers:
        # "*" after other rules may have nothing left to match, which is no mistake.
        if pattern != "*" and not any(map(matches, paths)):
            raise ArgumentError(
                f"{what}: no parameter is meant by the pattern {pattern!r}",
                instead=f"a pattern of paths such as {paths[0]!r}" if paths else "parameters that are not empty",
                pattern=pattern,
                paths=paths,
            )
    values = []
    for path in paths:
        # A tuple of one value, as the value itself may be None.
        rule = next(((value,) for _, matches, value in matchers if matches(path)), None)
        if rule is None and required:
            raise ArgumentError(
                f"{what}: no rule is for {path!r}", instead='a last rule for the others, "*": ...', path=path
            )
        values.append(default if rule is None else rule[0])
    return values


def shardings_by_path(what: str, tree: Any, rules: Mapping[Any, Any], mesh: Mesh) -> Any:
    """Returns a sharding for each leaf of a tree, by the first rule whose pattern matches its path.

    Args:
      what: the name of the caller, for errors.
      tree: a pytree of arrays or of their types.
      rules: `PartitionSpec` by pattern; leaves that no pattern matches are on all devices whole.
      mesh: the devices.

    Returns:
      A tree of `NamedSharding`.

    Raises:
      ArgumentError: a pattern matches nothing, or a rule does not fit a leaf, by path.

    >>> mesh = phlox.make_mesh((1,), ("data",))
    >>> shardings_by_path("rules", {"w": phlox.numpy.ones((4, 2))}, {"w": PartitionSpec("data")}, mesh)["w"].spec
    P('data',)
    """
    pairs, structure = tree_flatten_with_path(tree)
    specs = values_by_path(what, tree, rules, PartitionSpec())
    shardings = []
    for (path, leaf), spec in zip(pairs, specs, strict=True):
        spec = PartitionSpec() if spec is None else spec
        if not isinstance(spec, PartitionSpec):
            raise ArgumentError(
                f"{what}: the rule for {path_text(path)} is {spec!r}", instead='a PartitionSpec such as P("data")'
            )
        _check_spec(what, path_text(path), leaf.shape if hasattr(leaf, "shape") else (), spec, mesh)
        shardings.append(NamedSharding(mesh, spec))
    return structure.unflatten(shardings)


def _check_spec(what: str, name: str, shape: tuple[int, ...], spec: Any, mesh: Mesh) -> None:
    if len(spec) > len(shape):
        raise ArgumentError(f"{what}: {name} has shape {shape}, and {spec} speaks of {len(spec)} axes", path=name)
    for axis, entry in enumerate(spec):
        names = () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
        parts = 1
        for mesh_axis in names:
            if mesh_axis not in mesh.shape:
                raise ArgumentError(
                    f"{what}: {spec} for {name} names {mesh_axis!r}, but the mesh has {tuple(mesh.shape)}",
                    path=name,
                )
            parts *= mesh.shape[mesh_axis]
        if shape[axis] % parts:
            raise ArgumentError(
                f"{what}: axis {axis} of {name}, {shape}, cannot be cut into {parts} equal parts as {spec} asks",
                path=name,
            )
