"""Pytrees: own registry, registered classes, paths, prefixes, and how two trees differ."""

import collections
import dataclasses
import functools

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import errors, tree, tree_util
from phlox._base import pytree

Point = collections.namedtuple("Point", "x y")
ONES = "static data array([1., 1.])"


@tree_util.register_pytree_node_class
class Box:
    def __init__(self, content, label):
        self.content, self.label = content, label

    def tree_flatten(self):
        return (self.content,), self.label

    @classmethod
    def tree_unflatten(cls, label, children):
        return cls(*children, label)


@tree_util.register_dataclass
@dataclasses.dataclass
class Params:
    w: object
    b: object
    name: str = dataclasses.field(default="", metadata={"static": True})


class Table(dict):
    pass


tree_util.register_pytree_node(
    Table,
    lambda table: (list(table.values()), tuple(table)),
    lambda keys, values: Table(zip(keys, values, strict=True)),
)


@tree_util.register_pytree_node_class
class Stack:
    def __init__(self, layers):
        self.layers = list(layers)

    def tree_flatten(self):
        return tuple(self.layers), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(children)


TREE = {"b": [1, (2, None)], "a": Point(3, {"k": 4}), "c": collections.OrderedDict(z=5, y=6), "d": Box([7], "lid")}


def test_flatten_and_back():
    leaves, structure = tree.flatten(TREE)
    assert leaves == [3, 4, 1, 2, 5, 6, 7]
    again = tree.unflatten(structure, [x * 10 for x in leaves])
    assert again["a"] == Point(30, {"k": 40})
    assert again["b"] == [10, (20, None)]
    assert list(again["c"]) == ["z", "y"]
    assert again["d"].content == [70]
    assert again["d"].label == "lid"
    assert tree.structure(again) == structure
    assert hash(tree.structure(again)) == hash(structure)
    assert structure.num_leaves == 7
    default = collections.defaultdict(list, b=1, a=2)
    assert tree.leaves(default) == [2, 1]
    assert tree.map(lambda x: x, default).default_factory is list


def test_dataclasses():
    p = Params(1, {"x": 2}, "layer")
    doubled = tree.map(lambda x: x * 2, p)
    assert (doubled.w, doubled.b, doubled.name) == (2, {"x": 4}, "layer")
    assert tree.structure(p) != tree.structure(Params(1, {"x": 2}, "other"))
    out = phlox.jit(lambda p: p)(p)
    assert isinstance(out, Params)
    with pytest.raises(errors.OptionError):
        tree_util.register_dataclass(dataclasses.make_dataclass("Bad", ["a", "b"]), ["a"], [])


def test_static_nodes_and_partial():
    @tree_util.register_static
    class Flag:
        pass

    assert tree.leaves((Flag(), 1)) == [1]
    f = tree_util.Partial(lambda a, b: a * b, 3.0)
    assert tree.leaves(f) == [3.0]
    assert float(phlox.jit(lambda g, x: g(x))(f, 2.0)) == 6.0
    nested = tree_util.Partial(f, 2.0)
    assert nested() == 6.0


def test_map_reduce_all_transpose():
    assert tree.map(lambda a, sub: sum(sub) + a, {"x": 1}, {"x": [2, 3]}) == {"x": 6}
    assert tree.reduce(lambda a, b: a + b, TREE, 0) == 28
    assert tree.reduce_associative(max, TREE) == 7
    assert tree.all({"a": True, "b": [1]})
    outer, inner = tree.structure([0, 0]), tree.structure({"a": 0, "b": 0})
    assert tree.transpose(outer, inner, [{"a": 1, "b": 2}, {"a": 3, "b": 4}]) == {"a": [1, 3], "b": [2, 4]}
    assert tree.map(lambda x: x, [None, 1], is_leaf=lambda x: x is None) == [None, 1]
    # Trees without leaves, inside and outside.
    assert tree.transpose(outer, tree.structure(()), [(), ()]) == ()
    assert tree.transpose(outer, None, [None, None]) is None
    assert tree.transpose(tree.structure([]), inner, []) == {"a": [], "b": []}


def test_paths():
    pairs = tree.leaves_with_path(TREE)
    assert [tree_util.keystr(p) for p, _ in pairs] == [
        "['a'].x",
        "['a'].y['k']",
        "['b'][0]",
        "['b'][1][0]",
        "['c']['z']",
        "['c']['y']",
        "['d'][<flat index 0>][0]",
    ]
    assert tree_util.keystr(pairs[1][0], simple=True, separator="/") == "a/y/k"
    assert tree.map_with_path(lambda p, x: tree_util.keystr(p) * x, {"a": 1, "b": 2}) == {
        "a": "['a']",
        "b": "['b']['b']",
    }
    assert [tree_util.keystr(p) for p, _ in tree.leaves_with_path(Params(1, 2))] == [".w", ".b"]


def test_prefixes():
    assert pytree.broadcast_prefix({"a": 1, "b": 2}, {"a": [0, 0], "b": 0}) == [1, 1, 2]
    assert tree.broadcast((1, 2), ([0, 0], 0)) == ([1, 1], 2)
    assert pytree.broadcast_prefix((None, 1), ([0, 0], 0), is_leaf=pytree.is_none) == [None, None, 1]
    # `is_leaf` is about the prefix: what it would stop at in the full tree still has its leaves.
    assert tree.broadcast(1, [None, {"a": 0, "b": 0}], is_leaf=lambda x: not isinstance(x, list)) == [
        None,
        {"a": 1, "b": 1},
    ]


@pytest.mark.parametrize(
    "expected, got, path, says",
    [
        ({"a": 1}, {"a": [1]}, "['a']", ("a leaf", "a list of 1")),
        ({"a": 1, "b": 2}, {"a": 1}, "['b']", ("a leaf", "no such key")),
        ([1, 2], [1, 2, 3], "", ("a list of 2", "a list of 3")),
        ((1, [2, (3,)]), (1, [2, [3]]), "[1][1]", ("a tuple of 1", "a list of 1")),
        ([1, None], [1, 2], "[1]", ("None", "a leaf")),
        (Point(1, 2), (1, 2), "", ("a Point with .x, .y", "a tuple of 2")),
        ([Point(1, [2])], [Point(1, [2, 3])], "[0].y", ("a list of 1", "a list of 2")),
        (Box([1], "lid"), Box([1, 2], "lid"), ".content", ("a list of 1", "a list of 2")),
        (
            Box(1, "lid"),
            Box(1, "top"),
            "",
            ("a Box with .content and static data 'lid'", "a Box with .content and static data 'top'"),
        ),
        (
            Params(1, 2, "a"),
            Params(1, 2, "b"),
            "",
            ("a Params with .w, .b and static data .name='a'", "a Params with .w, .b and static data .name='b'"),
        ),
        (  # arrays have no equality
            Box(1, np.ones(2)),
            Box(1, np.ones(2)),
            "",
            (f"a Box with .content and {ONES}", f"a Box with .content and {ONES}, which is not equal to it"),
        ),
        (
            Table(a=1, b=2),
            Table(a=1, c=2),
            "",
            ("a Table with keys 'a', 'b'", "a Table with keys 'a', 'c'"),
        ),
        (
            collections.OrderedDict(a=1, b=2),
            collections.OrderedDict(b=1, a=2),
            "",
            ("an OrderedDict with keys 'a', 'b'", "an OrderedDict with keys 'b', 'a'"),
        ),
        (
            Stack([1, 2]),
            Stack([1, 2, 3]),
            "",
            (
                "a Stack with .layers[0], .layers[1]",
                "a Stack with .layers[0], .layers[1], .layers[2]",
            ),
        ),
    ],
)
def test_differences_name_the_place(expected, got, path, says):
    (found,) = pytree.differences(tree.structure(expected), tree.structure(got))
    assert (tree_util.keystr(found.path), (found.expected, found.got)) == (path, says)
    with pytest.raises(errors.TreeError) as caught:
        pytree.check_same(tree.structure(expected), tree.structure(got), "these differ")
    assert caught.value.path == found.path


@tree_util.register_pytree_node_class
class Slotted:
    __slots__ = ("scale", "shift")

    def __init__(self, scale, shift):
        self.scale, self.shift = scale, shift

    def tree_flatten(self):
        return (self.scale, self.shift), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


@tree_util.register_pytree_node_class
class Converting:
    """Its constructor refuses objects that are no arrays."""

    def __init__(self, values):
        self.values = jnp.asarray(values)

    def tree_flatten(self):
        return (self.values,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


@tree_util.register_pytree_node_class
class Twice(Slotted):
    """Two attributes hold the same child, so that neither names it."""

    def __init__(self, scale, shift):
        super().__init__(scale, shift)
        self.same = scale


@tree_util.register_pytree_node_class
class Searched:
    """Its children are the arrays that it finds: objects that are no arrays are none."""

    def __init__(self, *items):
        self.items = items

    def tree_flatten(self):
        arrays = [x for x in self.items if isinstance(x, jnp.ndarray)]
        return arrays, None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


@pytest.mark.parametrize(
    "node, names",
    [
        (Box([1, 2], "lid"), [".content[0]", ".content[1]"]),
        (Slotted(1, {"a": 2}), [".scale", ".shift['a']"]),
        (Params(1, Point(2, 3)), [".w", ".b.x", ".b.y"]),
        (Table(a=1, b=2), ["['a']", "['b']"]),
        (Stack([1, Slotted(2, 3)]), [".layers[0]", ".layers[1].scale", ".layers[1].shift"]),
        (Converting([1.0]), [".values"]),
        (Twice(1, 2), ["[<flat index 0>]", ".shift"]),
        (Searched("a", jnp.ones(2)), [".items[1]"]),
    ],
)
def test_messages_name_the_attributes_that_hold_children(node, names):
    structure = tree.structure(node)
    assert [tree_util.keystr(path) for path in pytree.named_paths(structure, node)] == names
    if type(node) not in (Converting, Searched):
        assert [tree_util.keystr(path) for path in pytree.named_paths(structure)] == names


PLACE = phlox.sharding.SingleDeviceSharding(phlox.devices()[0])
MESH = phlox.make_mesh((1,), ("i",), axis_types=(phlox.sharding.AxisType.Auto,))
ROWS = Converting(np.ones((3, 2), np.float32))
SQUARES = {
    "grad": lambda f: phlox.grad(lambda c: f(c).values.sum()),
    "vjp": lambda f: lambda c: phlox.vjp(f, c)[1](f(c))[0],
    "in_axes, out_axes": lambda f: phlox.vmap(lambda cs: [f(cs[0])], in_axes=([0],), out_axes=[1]),
    "out_shardings": lambda f: phlox.jit(f, out_shardings=PLACE),
    "shard_map": lambda f: phlox.shard_map(lambda c: (f(c),), mesh=MESH, in_specs=phlox.P(), out_specs=(phlox.P("i"),)),
}


@pytest.mark.parametrize("name", SQUARES)
def test_classes_that_accept_arrays_alone_pass_through_transformations(name):
    squares = SQUARES[name](lambda c: Converting(c.values**2))
    result = tree.leaves(squares([ROWS] if "axes" in name else ROWS))
    expected = {"grad": 2, "vjp": 2}.get(name, 1) * np.ones((3, 2) if "axes" not in name else (2, 3))
    np.testing.assert_array_equal(result[0], expected)


def test_prefixes_of_structures():
    full = {"a": [0, Slotted(1, 2)], "b": None, "c": (3, 4)}
    structure = tree.structure(full)
    for prefix in (0, {"a": 1, "b": None, "c": 2}, {"a": [1, 2], "b": None, "c": (3, None)}, {"a": [1, Slotted(2, 3)], "b": 4, "c": 5}):  # fmt: skip
        assert pytree.spread("f", prefix, structure, pytree.is_none) == pytree.spread("f", prefix, full, pytree.is_none)
    for wrong in ({"a": 1}, {"a": [1], "b": None, "c": 2}, {"a": 1, "b": None, "c": [2, 3]}):
        with pytest.raises(errors.TreeError, match="f specification must be a tree prefix"):
            pytree.spread("f", wrong, structure, pytree.is_none)


def test_arguments_that_are_no_residuals_are_missing_from_args_res():
    _, pullback = phlox.vjp(lambda x, c: (x["a"] * c.values).sum() + x["b"][0], {"a": 2.0, "b": [3.0]}, ROWS)
    assert repr(pullback.args_res[0]["b"]) == "[NotNeeded()]" and len(pullback.args_res) == 2
    pullback.args_res[1] = Converting(2 * ROWS.values)
    assert pullback(1.0)[0]["a"] == 12


def test_equal_trees_have_no_differences():
    assert pytree.differences(tree.structure(TREE), tree.structure(TREE)) == []
    pytree.check_same(tree.structure(TREE), tree.structure(tree.map(lambda x: 0, TREE)), "")


def test_dictionaries_whose_keys_cannot_be_sorted_are_refused():
    with pytest.raises(ValueError):
        tree.flatten({1: 1, "a": 2})


def test_the_registry_is_our_own():
    import jax

    assert jax.tree.leaves(Box(1, "lid")) != [1], "jax does not know classes registered here"

    class Theirs:
        pass

    jax.tree_util.register_pytree_node(Theirs, lambda x: ((), None), lambda *_: Theirs())
    assert len(tree.leaves(Theirs())) == 1
    assert np.array_equal(tree.leaves({"x": np.arange(2)})[0], [0, 1])


def test_trees_that_flatten_to_other_data_are_transposed():
    """As in jax the number of leaves decides: a node may file what it holds in its structure."""

    class Filed:
        def __init__(self, held):
            self.held = held

    tree_util.register_pytree_node(
        Filed,
        lambda x: (tree.leaves(x.held), tree.structure(x.held)),
        lambda structure, leaves: Filed(tree.unflatten(structure, leaves)),
    )
    outer, inner = tree.structure(Filed({"a": 1, "b": 2})), tree.structure([0, 0])
    first, second = tree.transpose(outer, inner, Filed({"a": [3, 4], "b": [5, 6]}))
    assert (first.held, second.held) == ({"a": 3, "b": 5}, {"a": 4, "b": 6})


def test_dataclasses_that_are_none():
    class Plain:
        pass

    with pytest.raises(TypeError, match="data_fields and meta_fields are required when nodetype is not a dataclass"):
        tree_util.register_dataclass(Plain)
    for given in ({"data_fields": ["x"]}, {"meta_fields": ["x"]}):
        with pytest.raises(TypeError, match="must both be specified when either is specified"):
            tree_util.register_dataclass(Plain, **given)
    assert tree.static(metadata={"static": False}).metadata == {"static": False}


@pytest.mark.filterwarnings("error")  # of an imaginary part that is dropped
def test_unraveling_real_parts_does_not_warn():
    flat, unravel = phlox.flatten_util.ravel_pytree((jnp.ones(2), jnp.ones(1, "complex64")))
    real, _ = unravel(flat * (1 + 1j))
    assert real.dtype == "float32" and real.tolist() == [1, 1]


def test_functions_that_unravel_are_equal_for_equal_trees():
    traced = []

    @functools.partial(phlox.jit, static_argnums=1)
    def f(flat, unravel):
        traced.append(flat)
        return unravel(flat + 1)

    for x in (1.0, 2.0):
        flat, unravel = phlox.flatten_util.ravel_pytree({"a": jnp.full(2, x), "b": jnp.ones((1, 2))})
        assert tree.map(jnp.shape, f(flat, unravel)) == {"a": (2,), "b": (1, 2)}
    assert len(traced) == 1
    _, other = phlox.flatten_util.ravel_pytree({"a": jnp.ones(2)})
    assert other != unravel


@tree_util.register_pytree_node_class
class ByType:
    """Fields are data or settings by their types, as in distrax: what is no array, tracer or `object` is a setting."""

    def __init__(self, **fields):
        self.fields = fields

    def tree_flatten(self):
        leaves, structure = tree_util.tree_flatten(self.fields)
        is_data = tuple(type(x) is object or isinstance(x, phlox.Array | np.ndarray) for x in leaves)
        settings = tuple(None if data else x for x, data in zip(leaves, is_data, strict=True))
        return [x if data else None for x, data in zip(leaves, is_data, strict=True)], (settings, is_data, structure)

    @classmethod
    def tree_unflatten(cls, aux, children):
        settings, is_data, structure = aux
        leaves = [x if data else setting for x, setting, data in zip(children, settings, is_data, strict=True)]
        return cls(**tree_util.tree_unflatten(structure, leaves))


def doubled(point, *more):
    return ByType(x=point.fields["x"] * 2, name="doubled"), *more


@pytest.mark.parametrize(
    "transformed",
    [
        phlox.jit(doubled),
        lambda *args: phlox.jit(doubled).lower(*args).compile()(*args),
        phlox.jit(doubled, out_shardings=phlox.sharding.SingleDeviceSharding(phlox.devices()[0])),
        phlox.jit(doubled, in_shardings=phlox.sharding.SingleDeviceSharding(phlox.devices()[0])),
        phlox.vmap(doubled, in_axes=(0, 0), out_axes=0),
        phlox.checkpoint(doubled),
        lambda *args: phlox.vjp(doubled, *args)[0],
        lambda *args: phlox.shard_map(
            doubled, mesh=phlox.make_mesh((1,), ("i",)), in_specs=phlox.P(), out_specs=phlox.P()
        )(*args),
    ],
)
def test_classes_that_tell_data_by_its_type(transformed):
    point, other = ByType(x=jnp.arange(3.0), name="point", count=3), jnp.ones(3)
    result, second = transformed(point, other)
    assert result.fields["x"].tolist() == [0, 2, 4]
    assert result.fields["name"] == "doubled"
    assert second.tolist() == [1, 1, 1]
