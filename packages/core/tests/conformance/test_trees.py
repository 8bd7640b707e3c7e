"""phlox.tree and phlox.tree_util, flatten_util: trees are taken apart, printed and built as jax does it."""

import collections
import dataclasses
import functools
import importlib
import operator
import types

import jax
import jax.flatten_util
import numpy as np
import pytest

import judge
import phlox
from conformance.harness import agree, outcome, row, same_kind


class Point(collections.namedtuple("Point", ["x", "y"])):
    pass


class Pair:
    """A container of one's own, registered in both libraries."""

    def __init__(self, first, second, name="pair"):
        self.first, self.second, self.name = first, second, name

    def __repr__(self):
        return f"Pair({self.first}, {self.second}, {self.name})"

    def __eq__(self, other):
        return isinstance(other, Pair) and vars(self) == vars(other)


class Keyed(Pair):
    pass


class Method(Pair):
    def tree_flatten(self):
        return (self.first, self.second), self.name

    @classmethod
    def tree_unflatten(cls, name, children):
        return cls(*children, name)


class KeyedMethod(Method):
    def tree_flatten_with_keys(self):
        return (("first", self.first), ("second", self.second)), self.name


@dataclasses.dataclass
class Record:
    a: object
    b: object
    note: str = "note"


class Fixed:
    def __eq__(self, other):
        return isinstance(other, Fixed)

    def __hash__(self):
        return 7

    def __repr__(self):
        return "Fixed()"


for m in (phlox, jax):
    u = m.tree_util
    u.register_pytree_node(Pair, lambda p: ((p.first, p.second), p.name), lambda name, xs: Pair(*xs, name))
    u.register_pytree_with_keys(
        Keyed,
        lambda p, u=u: (((u.GetAttrKey("first"), p.first), (u.GetAttrKey("second"), p.second)), p.name),
        lambda name, xs: Keyed(*xs, name),
    )
    u.register_pytree_node_class(Method)
    u.register_pytree_with_keys_class(KeyedMethod)
    u.register_dataclass(Record, data_fields=["a", "b"], meta_fields=["note"])
    u.register_static(Fixed)

TREES = {
    "leaf": 1,
    "None": None,
    "tuple": (1, 2),
    "empty": (),
    "list": [1, (2, [3])],
    "dict": {"b": 1, "a": {"d": 2, "c": None}},
    "numbers as keys": {2: "x", 1: "y"},
    "OrderedDict": collections.OrderedDict([("b", 1), ("a", 2)]),
    "defaultdict": collections.defaultdict(list, {"k": [1, 2]}),
    "namedtuple": Point(1, [2, None]),
    "node": Pair(1, {"a": 2}),
    "keyed": Keyed([1], 2),
    "class": Method(1, (2, 3)),
    "keyed class": KeyedMethod((1,), 2),
    "dataclass": Record([1, 2], {"k": 3}, "hi"),
    "static": (Fixed(), 1),
    "partial": "made below",
    "arrays": {"w": np.ones((2, 3)), "b": [np.zeros(3), 2.0]},
    "strings": ["a", ("b", object)],
    "deep": [[[[[1]]]], {"a": [{"b": (2,)}]}],
    "mixed": [Point(Pair(1, None), {"x": Keyed(2, ())}), [], {}],
}

trees = pytest.mark.parametrize("name", TREES)


def tree_of(name, m):
    return m.tree_util.Partial(operator.add, 1, x=2) if name == "partial" else TREES[name]


def alike(f, *, show=repr):
    """The same answer of both libraries, or the same kind of error."""
    found = []
    for m in (phlox, jax):
        try:
            found.append((f(m), None))
        except Exception as error:
            found.append((None, error))
    (mine, my_error), (theirs, their_error) = found
    if my_error is not None or their_error is not None:
        same_kind(my_error, their_error, "error")
    else:
        assert show(mine).replace("phlox.", "jax.") == show(theirs).replace("jaxlib.", "jaxlib."), (
            f"{show(mine)}, jax: {show(theirs)}"
        )


@trees
def test_flatten_and_build(name):
    alike(lambda m: m.tree.leaves(tree_of(name, m)))
    alike(lambda m: str(m.tree.structure(tree_of(name, m))))
    alike(lambda m: m.tree.flatten(tree_of(name, m))[0])
    alike(lambda m: m.tree.unflatten(m.tree.structure(tree_of(name, m)), m.tree.leaves(tree_of(name, m))))
    alike(lambda m: m.tree.structure(tree_of(name, m)).num_leaves)
    alike(lambda m: m.tree.structure(tree_of(name, m)).num_nodes)
    alike(lambda m: m.tree_util.treedef_is_leaf(m.tree.structure(tree_of(name, m))))
    alike(lambda m: [str(t) for t in m.tree_util.treedef_children(m.tree.structure(tree_of(name, m)))])
    alike(lambda m: m.tree_util.all_leaves(m.tree.leaves(tree_of(name, m))))
    alike(lambda m: m.tree_util.all_leaves([tree_of(name, m)]))
    alike(lambda m: m.tree.structure(tree_of(name, m)) == m.tree.structure(tree_of(name, m)))
    alike(lambda m: hash(m.tree.structure(tree_of(name, m))) == hash(m.tree.structure(tree_of(name, m))))


@trees
def test_paths(name):
    paths = lambda m: m.tree_util.tree_flatten_with_path(tree_of(name, m))[0]
    alike(lambda m: paths(m))
    alike(lambda m: [m.tree_util.keystr(path) for path, _ in paths(m)])
    alike(lambda m: [m.tree_util.keystr(path, simple=True, separator="/") for path, _ in paths(m)])
    alike(lambda m: m.tree.flatten_with_path(tree_of(name, m))[0])
    alike(lambda m: m.tree.leaves_with_path(tree_of(name, m)))
    alike(lambda m: m.tree.map_with_path(lambda path, x: m.tree_util.keystr(path) + repr(x), tree_of(name, m)))


def test_nothing_to_reduce():
    for m in (phlox, jax):
        with pytest.raises(TypeError, match="Must specify identity"):
            m.tree.reduce_associative(max, [])


@trees
def test_map_and_reduce(name):
    alike(lambda m: m.tree.map(lambda x: (x, x), tree_of(name, m)))
    alike(lambda m: m.tree.map(lambda x, y: [x, y], tree_of(name, m), tree_of(name, m)))
    alike(lambda m: m.tree.map(str, tree_of(name, m), is_leaf=lambda x: isinstance(x, tuple | Pair)))
    alike(lambda m: m.tree.reduce(lambda total, x: total + len(str(x)), tree_of(name, m), 0))
    alike(lambda m: m.tree.reduce(lambda total, x: (total, x), tree_of(name, m)))
    alike(lambda m: m.tree.reduce_associative(lambda x, y: f"({x}{y})", tree_of(name, m), identity="-"))
    alike(lambda m: m.tree.all(tree_of(name, m))) if name != "arrays" else None
    alike(lambda m: m.tree.leaves(tree_of(name, m), is_leaf=lambda x: x is None))


def test_transpose_and_broadcast():
    alike(
        lambda m: m.tree.transpose(
            m.tree.structure([0, 0]), m.tree.structure({"a": 0, "b": 0}), [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
        )
    )
    alike(lambda m: m.tree.transpose(m.tree.structure([0, 0]), None, [(1, 2), (3, 4)]))
    alike(lambda m: m.tree.transpose(m.tree.structure([0, 0]), m.tree.structure((0,)), [(1, 2), (3, 4)]))
    alike(lambda m: m.tree.broadcast([1, 2], [{"a": 0}, (0, 0)]))
    alike(lambda m: m.tree.broadcast(7, {"a": 0, "b": (0, None)}))
    alike(lambda m: m.tree.broadcast([1, 2], [0, 0, 0]))
    alike(lambda m: m.tree_util.tree_broadcast((1, None), ((0, 0), None)))
    alike(lambda m: m.tree.broadcast((1, {"c": 2}), ((0, 0), {"a": 0, "b": 0}), is_leaf=lambda x: isinstance(x, dict)))
    alike(lambda m: m.tree.broadcast([7, 3], [None, 2], is_leaf=lambda x: x is None))
    for inner in ((), None, [], {"a": None}):
        alike(lambda m, inner=inner: m.tree.transpose(m.tree.structure([0, 0]), None, [inner, inner]))
    alike(lambda m: str(m.tree_util.treedef_tuple([m.tree.structure([0]), m.tree.structure({"a": 0})])))


def test_names_in_tree_util_are_those_of_tree():
    for name in sorted({*phlox.tree.__all__} - {"static"}):  # which makes a field, and is no function of trees
        twin, function = getattr(phlox.tree_util, f"tree_{name}"), getattr(phlox.tree, name)
        assert twin is function or twin.__code__ is function.__code__, name
    alike(lambda m: m.tree_util.tree_map(abs, {"a": [-1, (-2,)]}))
    alike(lambda m: m.tree_util.tree_reduce(operator.add, [1, [2, 3]]))


WRONG = [
    lambda m: m.tree.map(operator.add, [1, 2], [1]),
    lambda m: m.tree.map(operator.add, {"a": 1}, {"b": 1}),
    lambda m: m.tree.map(operator.add, (1, 2), [1, 2]),
    lambda m: m.tree.map(operator.add, Point(1, 2), (1, 2)),
    lambda m: m.tree.map(operator.add, None, 1),
    lambda m: m.tree.map(operator.add, 1, [1]),
    lambda m: m.tree.unflatten(m.tree.structure([0, 0]), [1]),
    lambda m: m.tree.unflatten(m.tree.structure([0, 0]), [1, 2, 3]),
    lambda m: m.tree.leaves({1: 0, "a": 0}),
    lambda m: m.tree.reduce(operator.add, []),
    lambda m: m.tree_util.register_pytree_node(Pair, lambda p: ((), None), lambda a, c: Pair(0, 0)),
    lambda m: m.tree_util.register_static(Fixed),
    lambda m: m.tree.map(operator.add),
    lambda m: m.tree.map(3, [1]),
    lambda m: m.tree.structure(0, 0, 0),
    lambda m: m.tree_util.register_dataclass(type("R", (), {}), data_fields=["a"], meta_fields=["a"]),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_use(wrong):
    alike(wrong)


def test_keys_compare_and_print():
    for make in (
        lambda u: u.DictKey("a"),
        lambda u: u.DictKey(3),
        lambda u: u.SequenceKey(1),
        lambda u: u.GetAttrKey("x"),
        lambda u: u.FlattenedIndexKey(0),
    ):
        alike(lambda m, make=make: (make(m.tree_util), str(make(m.tree_util))))
        assert make(phlox.tree_util) == make(phlox.tree_util)
        assert hash(make(phlox.tree_util)) == hash(make(phlox.tree_util))
    alike(
        lambda m: m.tree_util.keystr(
            (m.tree_util.SequenceKey(0), m.tree_util.DictKey("k"), m.tree_util.GetAttrKey("x"), "other")
        )
    )


def test_which_classes_are_nodes():
    for cls in (
        tuple,
        list,
        dict,
        Point,
        Pair,
        Record,
        Fixed,
        int,
        str,
        np.ndarray,
        object,
        type(None),
        collections.OrderedDict,
    ):
        alike(lambda m, cls=cls: m.tree_util.is_tree_node(cls))


def test_partial_is_a_function_and_a_tree():
    for m in (phlox, jax):
        partial = m.tree_util.Partial(lambda a, b, c: a + b * c, m.numpy.ones(2), c=3.0)
        assert len(m.tree.leaves(partial)) == 2
        np.testing.assert_array_equal(m.jit(lambda f, x: f(x))(partial, 2.0), [7.0, 7.0])
        nested = m.tree_util.Partial(m.tree_util.Partial(operator.add, 1), 2)
        assert nested() == 3
    alike(
        lambda m: [
            type(m.tree_util.Partial(functools.partial(operator.add, 1), 2)()).__name__,
            m.tree_util.Partial(min, 3, 2)(),
        ]
    )


def test_trees_through_transformations():
    """Every kind of node is argument and result of jit, grad and vmap."""
    for name in ("list", "OrderedDict", "namedtuple", "node", "keyed", "class", "dataclass", "static", "mixed"):

        def run(m, name=name):
            tree = m.tree.map(lambda x: m.numpy.full(2, float(x)), tree_of(name, m))
            total = lambda t: sum((x**2).sum() for x in m.tree.leaves(t))
            doubled = m.jit(lambda t: m.tree.map(lambda x: 2 * x, t))(tree)
            return m.grad(total)(tree), doubled, m.vmap(lambda t: m.tree.map(lambda x: x + 1, t))(tree)

        (mine, theirs) = run(phlox), run(jax)
        assert repr(phlox.tree.map(np.asarray, mine)) == repr(jax.tree.map(np.asarray, theirs)), name


@trees
def test_one_level(name):
    alike(lambda m: m.tree_util.flatten_one_level(tree_of(name, m)))
    alike(lambda m: m.tree_util.flatten_one_level_with_keys(tree_of(name, m)))


def test_static_fields():
    for m in (phlox, jax):

        @dataclasses.dataclass
        class Layer:
            w: object
            name: str = m.tree.static(default="dense", metadata={"doc": "what it is"})

        m.tree_util.register_dataclass(Layer)
        assert m.tree.leaves(Layer(2.0)) == [2.0] and Layer(1).name == "dense"
        assert str(m.tree.map(lambda x: x + 1, Layer(2.0, "a"))).endswith("Layer(w=3.0, name='a')")
        assert m.tree_util.default_registry.flatten([1, (2,)])[0] == [1, 2]


# --- ravel_pytree

RAVELLED = [
    {"a": np.ones(2, np.float32), "b": 3.0},
    [np.arange(3), np.arange(2.0, dtype=np.float16)],
    (1, 2.5, True),
    [np.ones((2, 2), np.float32), [np.zeros((), np.int8), np.zeros((0, 3), np.float32)]],
    Point(np.ones(2, np.complex64), np.ones(3, np.float32)),
    [np.uint8(3), np.arange(2, dtype=np.uint8)],
    {},
    np.float32(2),
    [None, (np.ones(2, bool),)],
    [1, {"a": 2}],
    2.5,
    (1.5, np.float64(2)),
    [True, False],
    (1, 2),  # vectors of Python numbers alone have a weak type
    {"a": None, "b": 1j},
]


@pytest.mark.parametrize("position", range(len(RAVELLED)))
def test_ravel_pytree(position):
    tree = RAVELLED[position]
    near = row("ravel_pytree")
    ravel = lambda m: m.flatten_util.ravel_pytree(tree)
    agree(outcome(lambda m: ravel(m)[0], phlox, []), outcome(lambda m: ravel(m)[0], jax, []), near, "the vector")
    back = lambda m: ravel(m)[1](ravel(m)[0])
    agree(outcome(back, phlox, []), outcome(back, jax, []), near, "the tree")
    changed = lambda m: ravel(m)[1](ravel(m)[0] * 2)
    agree(outcome(changed, phlox, []), outcome(changed, jax, []), near, "the tree of another vector")
    short = lambda m: ravel(m)[1](m.numpy.ones(100))
    agree(outcome(short, phlox, []), outcome(short, jax, []), near, "a vector of another length")


def test_ravel_pytree_under_transformations():
    def run(m, x):
        def total(tree):
            flat, unravel = m.flatten_util.ravel_pytree(tree)
            return (flat**2).sum() + unravel(flat)["b"].sum()

        tree = {"a": x, "b": x[:2] * 2}
        return m.jit(total)(tree), m.grad(total)(tree), m.vmap(total)({"a": x.reshape(2, 2), "b": x.reshape(2, 2)})

    x = judge.array(judge.rng("ravel"), (4,), "float32")
    agree(outcome(run, phlox, [x]), outcome(run, jax, [x]), row("ravel_pytree"), "")
    assert types.FunctionType is type(phlox.flatten_util.ravel_pytree)


class Cached:
    """A container that has the structure of what it holds as its own."""

    def __init__(self, tree):
        self.tree = tree


def test_transposed_containers_that_keep_a_structure():
    for m in (phlox, jax):
        u = m.tree_util
        u.register_pytree_node(
            Cached, lambda x, u=u: u.tree_flatten(x.tree), lambda s, xs, u=u: Cached(u.tree_unflatten(s, xs))
        )
        outer, inner = u.tree_structure(Cached({"a": 1, "b": 2})), u.tree_structure([1, 2])
        found = u.tree_transpose(outer, inner, Cached({"a": [3, 4], "b": [5, 6]}))
        assert [x.tree for x in found] == [{"a": 3, "b": 5}, {"a": 4, "b": 6}]
        with pytest.raises(TypeError, match="Mismatch"):
            u.tree_transpose(outer, inner, Cached({"a": [3, 4], "b": [5]}))


def test_functions_that_unravel_are_one_static_argument():
    for m in (phlox, jax):
        flatten_util = importlib.import_module(f"{m.__name__}.flatten_util")
        traces = []

        def run(flat, unravel, traces=traces):
            traces.append(1)
            return unravel(flat + 1)

        run = m.jit(run, static_argnums=1)
        for tree in ((np.ones(2, np.float32),), (np.zeros(2, np.float32),), (np.ones(3, np.float32),)):
            run(*flatten_util.ravel_pytree(tree))
        assert len(traces) == 2


def test_metadata_of_static_fields():
    for m in (phlox, jax):
        assert m.tree.static(metadata={"static": False}).metadata == {"static": False}
        assert m.tree.static(metadata={"a": 1}).metadata == {"static": True, "a": 1}
        assert m.tree.static(metadata=None).metadata == {"static": True}


def test_words_of_register_dataclass():
    class Foo:
        x: int

    for m in (phlox, jax):
        register = m.tree_util.register_dataclass
        begin = "register_dataclass: data_fields and meta_fields "
        with pytest.raises(
            TypeError, match=begin + "are required when nodetype is not a dataclass. Got nodetype=<class"
        ):
            register(Foo)
        with pytest.raises(TypeError, match=begin + r"must both .*Got data_fields=\['x'\] meta_fields=None\."):
            register(Foo, data_fields=["x"])
        with pytest.raises(TypeError, match=begin + r"must both .*Got data_fields=None meta_fields=\['x'\]\."):
            register(Foo, meta_fields=["x"])
