"""Checkpoints: what is saved comes back, and trees that do not fit are refused with the place and both types."""

import collections
import json
import shutil
from typing import NamedTuple

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
import phlox_optim
from phlox.errors import DtypeError, ShapeError, TreeError
from phlox_optim.checkpoint import CheckpointManager
from phlox_optim.errors import CheckpointError, StepError


class Pair(NamedTuple):
    first: object
    second: object


class Box:
    """A container that phlox knows and jax does not."""

    def __init__(self, content, label):
        self.content, self.label = content, label


phlox.tree_util.register_pytree_with_keys(
    Box,
    lambda box: ([(phlox.tree_util.GetAttrKey("content"), box.content)], box.label),
    lambda label, children: Box(*children, label),
)


@pytest.fixture
def manager(tmp_path):
    with CheckpointManager(tmp_path / "steps") as made:
        yield made


def roundtrip(manager, tree, like=None):
    step = 0 if manager.latest_step() is None else manager.latest_step() + 1
    manager.save(step, tree)
    return manager.restore(like=tree if like is None else like)


def same(a, b):
    assert phlox.tree.structure(a) == phlox.tree.structure(b)
    for x, y in zip(phlox.tree.leaves(a), phlox.tree.leaves(b), strict=True):
        assert type(x) is type(y)
        if isinstance(x, phlox.Array | np.ndarray):
            assert (x.shape, x.dtype) == (y.shape, y.dtype)
            words = phlox.random.key_data if phlox.dtypes.issubdtype(x.dtype, phlox.dtypes.prng_key) else np.asarray
            np.testing.assert_array_equal(words(x), words(y))
        else:
            assert x == y


def training():
    """What a training program saves."""
    params = {"dense": (jnp.arange(6.0).reshape(2, 3), jnp.ones(3, jnp.bfloat16)), "layers": [jnp.ones(()), None]}
    tx = phlox_optim.chain(phlox_optim.clip(1.0), phlox_optim.adamw(phlox_optim.constant_schedule(1e-3)))
    _, state = tx.update(phlox.tree.map(jnp.cos, params), tx.init(params), params)
    return {
        "params": params,
        "state": state,
        "step": 7,
        "key": phlox.random.key(3),
        "old_key": phlox.random.PRNGKey(4),
        "keys": phlox.random.split(phlox.random.key(5), (2, 3)),
    }


# --- what comes back ------------------------------------------------------------------------------------


def test_the_state_of_a_training(manager):
    tree = training()
    again = roundtrip(manager, tree)
    same(tree, again)
    assert type(again["state"][1][0]) is type(tree["state"][1][0])
    assert int(again["state"][1][0].count) == 1
    expected = phlox.random.normal(tree["key"], (3,))
    np.testing.assert_array_equal(phlox.random.normal(again["key"], (3,)), expected)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint32", "int32", "float16", "bfloat16", "float32", "complex64", "float8_e4m3fn", "int4"]
)
def test_element_types(manager, dtype):
    tree = {"x": jnp.array([[0, 1, 1]]).astype(dtype), "scalar": jnp.array(1).astype(dtype)}
    same(tree, roundtrip(manager, tree))


def test_numpy_arrays_and_numbers_stay_what_they_are(manager):
    tree = {"wide": np.arange(3.0), "scalar": np.int64(3), "flags": [True, 2, 2.5, None], "big": -(1 << 63)}
    again = roundtrip(manager, tree)
    assert type(again["wide"]) is np.ndarray and again["wide"].dtype == np.float64
    assert again["scalar"].dtype == np.int64 and again["scalar"] == 3
    assert [type(x) for x in again["flags"]] == [bool, int, float, type(None)]
    assert again["flags"] == tree["flags"] and again["big"] == tree["big"]


def test_64_bit_arrays(manager):
    with phlox.enable_x64(True):
        tree = {"x": jnp.arange(3.0), "n": jnp.arange(3)}
        same(tree, roundtrip(manager, tree))
    with pytest.raises(DtypeError, match=r"\[3\] does not exist while 64-bit types are off"):
        manager.restore(like=tree)


def test_containers(manager):
    leaf = lambda: jnp.ones(2)
    tree = {
        "pair": Pair(leaf(), [leaf(), (leaf(),)]),
        "ordered": collections.OrderedDict(z=leaf(), a=2 * leaf()),
        "default": collections.defaultdict(list, {"k": [leaf()]}),
        "box": Box({"inside": leaf()}, "label"),
        "numbers": {3: leaf(), 1: 3 * leaf()},
        "nothing": [(), {}, [], None, Pair(None, ())],
    }
    again = roundtrip(manager, tree)
    same(tree, again)
    assert list(again["ordered"]) == ["z", "a"] and again["box"].label == "label"
    np.testing.assert_array_equal(again["numbers"][1], 3 * np.ones(2))


def test_arrays_without_elements(manager):
    tree = {"x": jnp.zeros((0, 3)), "keys": phlox.random.split(phlox.random.key(0), 0), "np": np.zeros(0, np.float64)}
    again = roundtrip(manager, tree)
    same(tree, again)
    with pytest.raises(ShapeError, match=r"expected f32\[0,4\], got f32\[0,3\]"):
        manager.restore(like={**tree, "x": jnp.zeros((0, 4))})


def test_a_tree_that_is_one_array(manager):
    same(jnp.arange(3), roundtrip(manager, jnp.arange(3)))


def test_like_may_be_types_alone(manager):
    tree = training()
    like = phlox.eval_shape(lambda: {name: part for name, part in tree.items() if name != "step"})
    again = roundtrip(manager, tree, {**like, "step": 0})
    same(tree, again)


def test_arrays_go_where_those_of_like_are(manager):
    there = phlox.devices()[3]
    tree = {"here": jnp.ones(3), "there": jnp.ones(3), "split": jnp.arange(8.0)}
    sharding = phlox.pmap(lambda x: x)(jnp.arange(8.0)).sharding
    like = {
        "here": jnp.zeros(3),
        "there": phlox.device_put(jnp.zeros(3), there),
        "split": phlox.device_put(jnp.zeros(8), sharding),
    }
    again = roundtrip(manager, tree, like)
    assert again["there"].device == there and again["there"].committed
    assert not again["here"].committed
    assert again["split"].sharding == sharding
    np.testing.assert_array_equal(again["split"], np.arange(8.0))
    same(tree, roundtrip(manager, again, tree))  # arrays on several devices are gathered


def test_what_happens_to_arrays_after_saving_does_not_matter(manager):
    """Saving returns before all is written: the arrays may be donated or changed by then."""
    size = 1 << 18
    update = phlox.jit(lambda x: x * 0 - 1, donate_argnums=0)
    x, host = jnp.arange(size, dtype=jnp.float32), np.arange(size)
    manager.save(0, {"x": x, "host": host})
    update(x)
    host[:] = -1
    again = manager.restore(like={"x": jnp.zeros(size), "host": host})
    np.testing.assert_array_equal(again["x"], np.arange(size))
    np.testing.assert_array_equal(again["host"], np.arange(size))


# --- steps ----------------------------------------------------------------------------------------------


def test_the_latest_steps_are_kept(tmp_path):
    like = {"x": jnp.zeros(())}
    with CheckpointManager(tmp_path, max_to_keep=2) as manager:
        for step in (0, 5, 7, 20):
            manager.save(step, {"x": jnp.float32(step)})
        assert manager.latest_step() == 20
        assert float(manager.restore(like=like)["x"]) == 20
        assert float(manager.restore(7, like=like)["x"]) == 7
        assert manager.all_steps() == [7, 20]
    with CheckpointManager(tmp_path) as manager:
        assert manager.all_steps() == [7, 20]
        assert float(manager.restore(jnp.int32(7), like=like)["x"]) == 7


def test_steps_that_are_not_there(manager, tmp_path):
    like = {"x": jnp.zeros(())}
    assert manager.latest_step() is None and manager.all_steps() == []
    with pytest.raises(StepError, match="there is no checkpoint in") as excinfo:
        manager.restore(like=like)
    assert excinfo.value.where.file == __file__
    assert not (tmp_path / "steps").exists(), "looking for checkpoints makes no folder"
    manager.save(3, like)
    with pytest.raises(StepError, match="no step 4") as excinfo:
        manager.restore(4, like=like)
    assert excinfo.value.steps == [3] and "one of 3" in str(excinfo.value)
    with pytest.raises(StepError, match="no step 4"):
        manager.delete(4)


def test_steps_only_go_up(manager):
    tree = {"x": jnp.zeros(())}
    manager.save(3, tree)
    for step in (3, 2):
        with pytest.raises(StepError, match=f"step {step} cannot be saved.* has steps up to 3"):
            manager.save(step, tree)
    manager.delete(3)
    manager.save(2, tree)
    assert manager.all_steps() == [2]


def test_the_end(tmp_path):
    manager = CheckpointManager(tmp_path)
    manager.save(0, {"x": 1})
    manager.close()
    manager.close()
    for call in (manager.latest_step, manager.wait_until_finished, lambda: manager.restore(like={"x": 1})):
        with pytest.raises(CheckpointError, match="is closed"):
            call()
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="file is a file"):
        CheckpointManager(tmp_path / "file")


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with CheckpointManager(tmp_path / "file" / "below") as manager, pytest.raises(OSError, match="file"):
        manager.save(0, {"x": 1})


# --- trees that do not fit ------------------------------------------------------------------------------


def tree():
    return {"a": jnp.ones((3, 4)), "b": [jnp.ones(2), jnp.arange(3)], "key": phlox.random.key(0), "n": 1}


def test_other_structures(manager):
    manager.save(0, tree())
    like = tree()
    like["c"] = like.pop("a")
    like["b"].append(2.0)
    with pytest.raises(TreeError, match="differs from step 0 in") as excinfo:
        manager.restore(like=like)
    text = str(excinfo.value)
    assert "at ['b'][2]: expected float, got nothing" in text
    assert "at ['c']: expected f32[3,4], got nothing" in text
    assert "at ['a']: expected no such leaf, got f32[3,4]" in text
    assert len(excinfo.value.differences) == 3
    assert excinfo.value.where.file == __file__


@pytest.mark.parametrize(
    "path, leaf, error, line",
    [
        ("a", np.ones((4, 3), np.float32), ShapeError, "at ['a']: expected f32[4,3], got f32[3,4]"),
        ("a", jnp.ones((3, 1)), ShapeError, "at ['a']: expected f32[3,1], got f32[3,4]"),
        ("a", jnp.ones((3, 4), jnp.bfloat16), DtypeError, "at ['a']: expected bf16[3,4], got f32[3,4]"),
        ("a", np.ones((3, 4)), DtypeError, "at ['a']: expected f64[3,4], got f32[3,4]"),
        ("a", 1.0, ShapeError, "at ['a']: expected float, got f32[3,4]"),
        ("key", phlox.random.PRNGKey(0), DtypeError, "at ['key']: expected u32[2], got keys of threefry2x32[]"),
        ("key", 3, ShapeError, "at ['key']: expected int, got keys of threefry2x32[]"),
        ("a", phlox.random.key(0), ShapeError, "at ['a']: expected keys of threefry2x32[], got f32[3,4]"),
        ("n", 1.0, DtypeError, "at ['n']: expected float, got int"),
        ("n", True, DtypeError, "at ['n']: expected bool, got int"),
        ("n", jnp.array(1), DtypeError, "at ['n']: expected i32[], got int"),
    ],
)
def test_other_types(manager, path, leaf, error, line):
    manager.save(0, tree())
    with pytest.raises(error) as excinfo:
        manager.restore(like={**tree(), path: leaf})
    assert type(excinfo.value) is error
    assert line in str(excinfo.value)
    assert phlox.tree_util.keystr(excinfo.value.path) == f"['{path}']"
    assert excinfo.value.where.file == __file__


def test_a_number_may_have_been_an_array(manager):
    assert roundtrip(manager, {"n": jnp.uint32(3), "x": jnp.float32(0.5)}, {"n": 0, "x": 0.0}) == {"n": 3, "x": 0.5}


def test_leaves_that_cannot_be_saved(manager):
    for leaf, message in [
        (b"text", r"leaf \['x'\]\[0\] is b'text' of type bytes"),
        (np.array(["text"]), "element type <U4, which orbax cannot store"),
        (np.array([None]), "element type object"),
        (jnp.ones(2, jnp.uint4), "element type uint4"),
        (print, "of type builtin_function_or_method"),
    ]:
        with pytest.raises(CheckpointError, match=message):
            manager.save(0, {"x": [leaf]})
    for tree in ({}, None, [(), None]):
        with pytest.raises(CheckpointError, match="no leaves"):
            manager.save(0, tree)
    with pytest.raises(CheckpointError, match=r"\['a'\]\['b'\] and \['a.b'\] would both be saved as 'a.b'"):
        manager.save(0, {"a.b": 1, "a": {"b": 2}})
    with pytest.raises(TreeError, match="a leaf without a type"):
        manager.restore(like={"x": b"text"})
    manager.save(0, {"x": 1})
    assert manager.restore(like={"x": 0}) == {"x": 1}, "a refused tree leaves the manager as it was"


@pytest.mark.parametrize(
    "leaf", ["text", "", "ünï✓\n\0", "\udc80", 1j, complex(-0.0, float("nan")), 1 << 63, -(1 << 200)]
)
def test_text_and_numbers_that_orbax_has_no_form_for(manager, leaf):
    manager.save(0, {"x": [leaf, 1.5], "y": jnp.ones(2)})
    with_like = manager.restore(like={"x": [type(leaf)(), 0.0], "y": jnp.zeros(2)})
    for found in (with_like, manager.restore()):
        assert repr(found["x"]) == repr([leaf, 1.5])
        assert type(found["x"][0]) is type(leaf)
    for other in (jnp.zeros(2), 1.5, True, np.zeros(4, np.uint8)):
        with pytest.raises((DtypeError, ShapeError), match=f"got {type(leaf).__name__}"):
            manager.restore(like={"x": [other, 0.0], "y": jnp.zeros(2)})


def test_text_is_not_restored_from_numbers(manager):
    manager.save(0, {"x": 3, "y": jnp.ones(2, jnp.uint8)})
    for x, y in [("", jnp.ones(2, jnp.uint8)), (1j, jnp.ones(2, jnp.uint8)), (0, "")]:
        with pytest.raises((DtypeError, ShapeError)):
            manager.restore(like={"x": x, "y": y})


def test_saving_belongs_outside_of_transformations(manager):
    with pytest.raises(phlox.errors.TracerArrayConversionError):
        phlox.jit(lambda x: manager.save(0, {"x": x}))(1.0)


# --- without a tree to compare with, and damaged files ------------------------------------------------------


def test_restoring_without_like(manager):
    tree = {
        "w": jnp.arange(6.0).reshape(2, 3),
        "layers": [{"b": jnp.ones(2, jnp.bfloat16)}, {"b": np.zeros((2, 0), np.float32)}],
        "pair": Pair(jnp.int32(3), None),
        "key": phlox.random.key(7),
        "step": 5,
        "rate": 0.5,
        "on": True,
    }
    manager.save(0, tree)
    found = manager.restore()
    assert (found["step"], found["rate"], found["on"]) == (5, 0.5, True)
    assert [type(found[name]) for name in ("step", "rate", "on")] == [int, float, bool]
    same(found["w"], tree["w"])
    same(found["layers"], [tree["layers"][0], {"b": jnp.zeros((2, 0))}])
    assert int(found["pair"]["first"]) == 3 and found["pair"]["second"] is None
    same(phlox.random.key_data(found["key"]), phlox.random.key_data(tree["key"]))
    same(manager.restore(0), found)


def test_restoring_one_array_without_like(manager):
    manager.save(0, jnp.arange(3))
    same(manager.restore(), jnp.arange(3))


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("how", ["cut", "empty", "gone", "changed"])
def test_damaged_files(tmp_path, how):
    """Whichever file it is: the step is restored bit for bit, or called damaged, with the steps that are not."""
    tree = {"a": jnp.arange(3000.0), "b": {"c": jnp.ones((2, 2)), "n": 3}}
    pristine = tmp_path / "pristine"
    with CheckpointManager(pristine) as checkpoints:
        for step in range(3):
            checkpoints.save(step, tree)
    damaged = 0
    for number, path in enumerate(files_of(pristine / "1")):
        folder = tmp_path / str(number)
        shutil.copytree(pristine, folder)
        victim = folder / path.relative_to(pristine)
        data = victim.read_bytes()
        if how == "gone":
            victim.unlink()
        else:
            middle = len(data) // 2
            changed = data[:middle] + bytes(b ^ 0xFF for b in data[middle : middle + 16]) + data[middle + 16 :]
            victim.write_bytes({"cut": data[:middle], "empty": b"", "changed": changed}[how])
        with CheckpointManager(folder) as checkpoints:
            assert checkpoints.all_steps() == [0, 1, 2]
            try:
                same(checkpoints.restore(1, like=tree), tree)
            except CheckpointError as error:
                assert "step 1" in str(error) and "damaged" in str(error), f"{path.name}: {error}"
                assert error.intact == [0, 2] and "intact step: 0, 2" in str(error)
                damaged += 1
            same(checkpoints.restore(2, like=tree), tree)
    assert damaged


@pytest.mark.parametrize(("saved", "restored"), [(8, 2), (2, 8), (1, 4), (4, 1)])
def test_other_shardings_and_device_counts(manager, saved, restored):
    def placed(count, *axes):
        mesh = phlox.sharding.Mesh(np.array(phlox.devices()[:count]), ("data",))
        return phlox.sharding.NamedSharding(mesh, phlox.sharding.PartitionSpec(*axes))

    values = {"w": np.arange(64.0, dtype="f4").reshape(8, 8), "key": phlox.random.split(phlox.random.key(0), 8)}
    manager.save(0, phlox.device_put(values, placed(saved, "data")))
    like = {
        "w": phlox.device_put(jnp.zeros((8, 8)), placed(restored, None, "data")),
        "key": phlox.device_put(phlox.random.split(phlox.random.key(1), 8), placed(restored)),
    }
    found = manager.restore(like=like)
    assert found["w"].sharding == like["w"].sharding
    assert len(found["w"].addressable_shards) == restored
    np.testing.assert_array_equal(found["w"], values["w"])
    np.testing.assert_array_equal(phlox.random.key_data(found["key"]), phlox.random.key_data(values["key"]))
    assert found["key"].sharding == like["key"].sharding


def test_a_folder_that_claims_many_processes(tmp_path):
    """Its name is no reason to make as many names."""
    (tmp_path / "process-0-of-99999999999999").mkdir()
    with CheckpointManager(tmp_path) as checkpoints:
        assert checkpoints.all_steps() == []


def test_a_description_of_other_types(tmp_path):
    """Hostile notes beside the arrays are damage, not a KeyError."""
    with CheckpointManager(tmp_path) as checkpoints:
        checkpoints.save(0, {"name": "text"})
    (path,) = tmp_path.glob("0/_CHECKPOINT_METADATA")
    described = json.loads(path.read_text())
    described["custom_metadata"]["phlox"]["written"] = [[["name"], "unknown"]]
    path.write_text(json.dumps(described))
    with CheckpointManager(tmp_path) as checkpoints, pytest.raises(CheckpointError, match=r"step 0 .* is damaged"):
        checkpoints.restore()


def test_arrays_of_the_other_byte_order(manager):
    """Checksums are of the bytes that orbax restores, which have the order of the machine."""
    tree = {"x": np.arange(3, dtype=">i4"), "y": np.arange(3, dtype="<f8"), "z": np.int8(3)}
    manager.save(0, tree)
    restored = manager.restore(like=tree)
    assert restored["x"].tolist() == [0, 1, 2] and restored["x"].dtype == np.int32
    assert type(restored["z"]) is np.int8


@pytest.mark.parametrize("tree", [3.5, True, "", jnp.float32(2), jnp.zeros((0, 2))], ids=repr)
def test_a_number_alone(manager, tree):
    with pytest.raises(CheckpointError, match=r"alone\n(.|\n)*instead: a tree such as"):
        manager.save(0, tree)
