"""Differences between the structures of two trees, for error messages: each names a path and what is there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from .errors import FunctionTreeError, TreeError
from .tree_registry import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    PyTreeDef,
    SequenceKey,
    flatten,
    keystr,
    registered,
    registry,
)

_LEAF: PyTreeDef = flatten(0)[1]


class Difference(NamedTuple):
    """One place where two trees differ: its path, what was expected there, and what was found."""

    path: KeyPath
    expected: str
    got: str


def differences(expected: PyTreeDef, got: PyTreeDef, *, prefix: bool = False, path: KeyPath = ()) -> list[Difference]:
    """All places where the structure `got` differs from `expected`, outermost first.

    With ``prefix=True`` a leaf of `expected` matches any subtree.
    """
    want, have = expected.node_data(), got.node_data()
    if want is None or have is None:
        same = want is have or (prefix and want is None)
        return [] if same else [Difference(path, describe(expected), describe(got))]
    # Dicts are compared key by key below, which says more than two lists of keys.
    if want[0] is not have[0] or (want[0] is not dict and not are_equal(want[1], have[1])):
        return [Difference(path, *_describe_both(expected, got))]
    children, others = expected.children(), got.children()
    rows: list[tuple[KeyEntry, PyTreeDef | None, PyTreeDef | None]]
    if want[0] is dict:
        mine, yours = (dict(zip(data[1], below, strict=True)) for data, below in ((want, children), (have, others)))
        rows = [(DictKey(key), mine.get(key), yours.get(key)) for key in dict.fromkeys((*mine, *yours))]
    elif len(children) != len(others):
        return [Difference(path, describe(expected), describe(got))]
    else:
        rows = list(zip(child_keys(expected), children, others, strict=True))
    mismatches: list[Difference] = []
    for key, child, other in rows:
        if child is None or other is None:
            texts = ("no such key" if x is None else describe(x) for x in (child, other))
            mismatches.append(Difference((*path, key), *texts))
        else:
            mismatches += differences(child, other, prefix=prefix, path=(*path, key))
    return mismatches


def are_equal(want: Any, have: Any) -> bool:
    """Whether two structures, or static data of two nodes, are equal. What cannot be compared, as arrays, is not."""
    try:
        return bool(want == have)
    except Exception:
        return False


def named_paths(treedef: PyTreeDef, tree: Any = None) -> list[KeyPath]:
    """The path to each leaf of a structure, for messages.

    Children of classes that were registered without keys are named by the attributes that hold them: ``.weights``
    instead of ``[<flat index 0>]``, which only JAX's own paths (`tree_flatten_with_path`) say. `tree` is a tree of this
    structure, if there is one: it helps with classes whose constructors convert their arguments.
    """
    if treedef.node_data() is None:
        return [()]
    below: Sequence[Any] = treedef.children()
    # Named by the instance where there is one: the children of a node made from types may have lost their names.
    parts = [None] * len(below) if tree is None else [child for _, child in _one_level(tree)]
    rows = zip(child_keys(treedef, tree), below, parts, strict=True)
    return [(key, *path) for key, child, part in rows for path in named_paths(child, part)]


def _one_level(tree: Any) -> list[tuple[KeyEntry, Any]]:
    return list(registry.flatten_one_level_with_keys(tree)[0])


# A structure has no instance, so one is made of its static data to see which attribute holds which child.
def child_keys(treedef: PyTreeDef, tree: Any = None) -> list[KeyEntry]:
    """The keys of the direct children of a node, for messages: see `named_paths`."""
    node_data = treedef.node_data()
    count = len(treedef.children())
    if node_data is None or count == 0:
        return []
    if node_data[0] is dict:
        return [DictKey(key) for key in node_data[1]]
    if node_data[0] in (list, tuple):
        return [SequenceKey(i) for i in range(count)]
    if hasattr(node_data[0], "_fields") and node_data[0] not in registered:
        # Not asked of jaxlib: until 0.10 it gives every child the name of the first field.
        return [GetAttrKey(name) for name in node_data[0]._fields]
    try:
        # An instance whose children occur nowhere else: the attributes that hold them are unambiguous.
        one_level = PyTreeDef.from_node_data_and_children(registry, node_data, [_LEAF] * count)
        keys = _attribute_keys(one_level.unflatten([object() for _ in range(count)]))
    except Exception:  # the user's class does not take any object as a child
        keys = []
    if len(keys) != count:  # nor does a class that looks for arrays when it is flattened, as array-api-extra's
        keys = [FlattenedIndexKey(i) for i in range(count)]
    return _attribute_keys(tree) if tree is not None and any(map(_is_number, keys)) else keys


def _attribute_keys(node: Any) -> list[KeyEntry]:
    """The keys of the direct children of `node`; attributes or items take the place of numbers."""
    pairs = _one_level(node)
    if not any(_is_number(key) for key, _ in pairs):
        return [key for key, _ in pairs]
    # Classes with slots have no `__dict__`.
    slots = [name for kind in type(node).__mro__ for name in _slots(kind) if hasattr(node, name)]
    attributes = {name: getattr(node, name) for name in [*getattr(node, "__dict__", ()), *slots]}
    holders: dict[int, list[KeyEntry]] = {}
    for key, value in _items(node):
        holders.setdefault(id(value), []).append(key)
    for name, value in attributes.items():
        holders.setdefault(id(value), []).append(GetAttrKey(name))
        for key, item in _items(value):
            holders.setdefault(id(item), []).append(GetAttrKey(f"{name}{key}"))
    # By identity. A child that several attributes hold has no name of its own, and keeps its number.
    candidates = [holders.get(id(child), []) for _, child in pairs]
    return [names[0] if len(names) == 1 else key for names, (key, _) in zip(candidates, pairs, strict=True)]


def _items(value: Any) -> list[tuple[KeyEntry, Any]]:
    if isinstance(value, dict):
        return [(DictKey(key), item) for key, item in value.items()]
    return [(SequenceKey(i), item) for i, item in enumerate(value)] if isinstance(value, list | tuple) else []


def _slots(kind: type) -> Sequence[str]:
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _is_number(key: KeyEntry) -> bool:
    return isinstance(key, FlattenedIndexKey)


def describe(treedef: PyTreeDef) -> str:
    """A structure in a few words: ``a leaf``, ``None``, ``a list of 3``, ``a dict with keys 'a', 'b'``, ``a Layer with
    .weights, .bias``."""
    data = treedef.node_data()
    if data is None:
        return "a leaf"
    kind, aux = data
    if kind is type(None):
        return "None"
    if kind is dict:
        return "a dict with keys " + ", ".join(map(repr, aux)) if aux else "an empty dict"
    keys = child_keys(treedef)
    article = "an" if kind.__name__[0].lower() in "aeiou" else "a"
    if not keys or kind in (list, tuple) or any(map(_is_number, keys)):
        return f"{article} {kind.__name__} of {len(keys)}"
    if all(isinstance(key, DictKey) for key in keys):
        return f"{article} {kind.__name__} with keys " + ", ".join(repr(key.key) for key in keys)
    # Eight names are enough to recognize a class, and fit on a line.
    shown = [keystr((key,)) for key in keys[:8]]
    return f"{article} {kind.__name__} with " + ", ".join([*shown, "…"] if len(keys) > 8 else shown)


def _describe_both(expected: PyTreeDef, got: PyTreeDef) -> tuple[str, str]:
    """Both structures in a few words, with their static data where the rest of the words is equal."""
    texts = describe(expected), describe(got)
    # A node has (class, static data), a leaf None.
    want, have = expected.node_data(), got.node_data()
    if texts[0] != texts[1] or want is None or have is None:
        return texts
    fields = registered.get(want[0])
    static = _differing(want[1], have[1], fields[1] if fields else ())
    return f"{texts[0]} and {static[0]}", f"{texts[1]} and {static[1]}"


def _differing(want: Any, have: Any, names: Sequence[str]) -> tuple[str, str]:
    """The parts of the static data of two nodes that differ; `names` are those of a dataclass's fields."""
    texts: tuple[list[str], list[str]] = [], []
    if type(want) is type(have) is tuple and len(want) == len(have):
        for i, pair in enumerate(zip(want, have, strict=True)):
            # Only the parts that differ: static data of a model may be long.
            if not are_equal(*pair):
                for text, value in zip(texts, pair, strict=True):
                    text.append(f".{names[i]}={value!r:.80}" if names else f"{value!r:.80}")
    if texts[0] and texts[0] != texts[1]:
        mine, yours = (", ".join(text) for text in texts)
    else:
        mine, yours = f"{want!r:.80}", f"{have!r:.80}"
    # Two objects without a text of their own print alike.
    if mine == yours:
        yours += ", which is not equal to it"
    return f"static data {mine}", f"static data {yours}"


def _kind(expected: str, got: str) -> str:
    """The kind of difference between two descriptions of structures, for the message."""
    if "no such key" in (expected, got):
        return " (different keys)"
    if not expected.startswith(("a ", "an ", "None")):
        return ""
    if expected.split()[:2] != got.split()[:2]:
        return " (different types)"
    if " static data " in expected:
        return " (different static data)"
    return " (different lengths)" if " of " in expected else " (different keys)"


def tree_error(
    what: str, differences: list[Difference], instead: str = "", kind: type[TreeError] = TreeError
) -> TreeError:
    """An error of class `kind` that lists `differences`; its attributes describe the first difference.

    Args:
      what: the first line of the message.
      differences: those of two trees; the message lists the first five.
      instead: what to write instead.
      kind: the class of the error.

    Returns:
      The error, to be raised. Its attribute `differences` has them.

    >>> error = tree_error("these differ", [Difference((DictKey("a"),), "a tuple", "a leaf")])
    >>> error.path, error.expected, error.got
    ((DictKey(key='a'),), 'a tuple', 'a leaf')
    """
    lines = [what, f"  Mismatch details ({len(differences)} found):"] if differences else [what]
    # Trees that differ at one level often differ at all places below; the first five show how.
    for path, expected, got in differences[:5]:
        lines.append(f"    at {keystr(path) or 'the top'}: expected {expected}, got {got}{_kind(expected, got)}")
    if len(differences) > 5:
        lines.append(f"    and {len(differences) - 5} more places")
    first = differences[0] if differences else Difference((), "", "")
    return kind("\n".join(lines), instead=instead, differences=differences, **first._asdict())


class _Word(str):
    """A text that is printed without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def typed_text(tree: PyTreeDef, types: Iterable[str]) -> str:
    """A structure with the types of its leaves, in one line: ``(f32[3], {'count': i32[]})``.

    Args:
      tree: the structure.
      types: a text for each leaf.

    Returns:
      The text, shortened to 200 characters.

    >>> typed_text(phlox.tree_util.tree_structure((0, None, {"a": 0})), ["f32[3]", "i32[]"])
    "(f32[3], None, {'a': i32[]})"
    """
    try:
        text = repr(tree.unflatten(map(_Word, types)))
    except Exception:  # a class of the user that does not accept these leaves
        text = str(tree)
    return text if len(text) <= 200 else text[:200] + "…"


def check_same(
    expected: PyTreeDef, got: PyTreeDef, what: str, instead: str = "", kind: type[TreeError] = FunctionTreeError
) -> None:
    """Raises an error of class `kind` that starts with `what`, unless the two structures are equal."""
    if not are_equal(expected, got):
        raise tree_error(what, differences(expected, got), instead, kind)
