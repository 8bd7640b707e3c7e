"""Files of weights that are damaged or hostile: each is refused with its name and the reason, and no other is read."""

import json
import os
import struct

import ml_dtypes
import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
from phlox.errors import ArgumentError, DtypeError

LAYER = nn.Linear(2, 3)
WEIGHTS = {"weight": np.arange(6, dtype="f4").reshape(3, 2), "bias": np.ones(3, "f4")}


def entry(dtype, shape, start, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def write(path, header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)
    return path


def write_weights(path):
    header = {
        "weight": entry("F32", [3, 2], 0, 24),
        "bias": entry("F32", [3], 24, 36),
        "__metadata__": {"format": "pt"},
    }
    return write(path, header, b"".join(x.tobytes() for x in WEIGHTS.values()))


GOOD = entry("F32", [2], 0, 8)
HEADERS = {
    "fewer than 8 bytes": None,
    "header would have 1000 bytes": ({"w": GOOD}, bytes(8), 1000),
    "header would have 4611686018427387904 bytes": ({"w": GOOD}, bytes(8), 2**62),
    "header is not JSON": (b"{", b""),
    "header is not JSON ": (b"[" * 100_000, b""),
    "header is no JSON object": (b"[1, 2]", b""),
    "'w' twice": (b'{"w": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}, "w": {}}', bytes(1)),
    "'dtype' twice": (b'{"w": {"dtype": "U8", "dtype": "I8", "shape": [1], "data_offsets": [0, 1]}}', bytes(1)),
    "'v' do not follow": ({"w": GOOD, "v": entry("F32", [2], 4, 12)}, bytes(12)),
    "'v' do not follow ": ({"w": GOOD, "v": entry("F32", [2], 12, 20)}, bytes(20)),
    "have 8 bytes, of which 4": ({"w": GOOD}, bytes(4)),
    "have 8 bytes, of which 9": ({"w": GOOD}, bytes(9)),
    "'w' of shape (3,) does not fit": ({"w": entry("F32", [3], 0, 8)}, bytes(8)),
    "'w' of shape (4611686018427387904, 4)": ({"w": entry("F32", [2**62, 4], 0, 0)}, b""),
    "'w' is not a dtype, a shape": ({"w": entry("F32", [-2], 0, 8)}, bytes(8)),
    "'w' is not a dtype, a shape ": ({"w": entry("F32", [True], 0, 4)}, bytes(4)),
    "'w' is not a dtype, a shape  ": ({"w": [1]}, b""),
    "'w' has the element type 'F4'": ({"w": entry("F4", [2], 0, 1)}, bytes(1)),
}


@pytest.mark.parametrize("reason", HEADERS)
def test_files_that_are_no_safetensors(tmp_path, reason):
    path = tmp_path / "a.safetensors"
    if HEADERS[reason] is None:
        path.write_bytes(b"abc")
    else:
        write(path, *HEADERS[reason])
    with pytest.raises(ArgumentError) as excinfo:
        nn.load_safetensors(LAYER, path)
    assert reason.strip() in str(excinfo.value) and repr(str(path)) in str(excinfo.value)


INDICES = {
    '["a"]': 'no "weight_map"',
    "{}": 'no "weight_map"',
    '{"weight_map": []}': 'no "weight_map"',
    '{"weight_map": {"weight": 1}}': 'no "weight_map"',
    '{"weight_map": {"weight": null}}': 'no "weight_map"',
    '{"weight_map": ': "not JSON",
    "\xff": "not JSON",
    '{"weight_map": {"weight": "a.safetensors", "weight": "b.safetensors"}}': "'weight' twice",
    '{"weight_map": {"weight": "missing.safetensors"}}': "there is no file",
    '{"weight_map": {"weight": ""}}': "no .safetensors file",
    '{"weight_map": {"weight": "a.bin"}}': "no .safetensors file",
    '{"weight_map": {"scale": "a.safetensors"}}': "'scale' in 'a.safetensors', which has no such tensor",
    '{"weight_map": {"weight": "folder.safetensors"}}': "there is no file",
    **{
        json.dumps({"weight_map": {"weight": name}}): "not below its folder"
        for name in (
            *("../secret.safetensors", "a/../../secret.safetensors", "/etc/secret.safetensors", "..", "/"),
            *("..\\secret.safetensors", "C:\\secret.safetensors", "\\\\server\\secret.safetensors", "a\0.safetensors"),
        )
    },
}


@pytest.mark.parametrize("text", INDICES)
def test_hostile_indices(tmp_path, text):
    folder = tmp_path / "model"
    (folder / "folder.safetensors").mkdir(parents=True)
    write_weights(tmp_path / "secret.safetensors")
    write_weights(folder / "a.safetensors")
    index = folder / "model.safetensors.index.json"
    index.write_bytes(text.encode("latin-1"))
    for call in (nn.load_safetensors, nn.compare_weights):
        with pytest.raises(ArgumentError) as excinfo:
            call(LAYER, folder)
        assert INDICES[text] in str(excinfo.value)


def test_an_index_that_is_too_long(tmp_path):
    index = tmp_path / "model.safetensors.index.json"
    with index.open("wb") as file:
        file.truncate(1 << 40)  # a file with a hole, which takes no space
    with pytest.raises(ArgumentError, match="it has 1099511627776 bytes"):
        nn.load_safetensors(LAYER, tmp_path)


def test_absolute_paths_of_files_that_exist_are_refused(tmp_path):
    (tmp_path / "model").mkdir()
    secret = write_weights(tmp_path / "secret.safetensors")
    index = tmp_path / "model" / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": dict.fromkeys(WEIGHTS, str(secret))}))
    with pytest.raises(ArgumentError, match="not below its folder"):
        nn.load_safetensors(LAYER, index)


def test_links_and_folders_below_the_index(tmp_path):
    """The cache of Hugging Face has links to files elsewhere."""
    (tmp_path / "snapshot" / "part").mkdir(parents=True)
    os.symlink(write_weights(tmp_path / "blob"), tmp_path / "snapshot" / "part" / "a.safetensors")
    index = tmp_path / "snapshot" / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": dict.fromkeys(WEIGHTS, "part/a.safetensors")}))
    params, _ = nn.load_safetensors(LAYER, tmp_path / "snapshot")
    np.testing.assert_array_equal(params["weight"], WEIGHTS["weight"].T)


@pytest.mark.parametrize(("name", "words"), [("a.npz", "numpy.load"), ("a.safetensors", "complete file")])
def test_files_of_other_formats(tmp_path, name, words):
    (tmp_path / name).write_bytes(b"PK\3\4" + bytes(range(60)))
    with pytest.raises(ArgumentError, match="is no valid safetensors file") as excinfo:
        nn.load_torch(LAYER, str(tmp_path / name))
    assert words in str(excinfo.value)


DTYPES = {
    "BOOL": bool,
    "U8": "u1",
    "I8": "i1",
    "I16": "i2",
    "U16": "u2",
    "I32": "i4",
    "U32": "u4",
    "I64": "i8",
    "U64": "u8",
    "F16": "f2",
    "F32": "f4",
    "F64": "f8",
    "C64": "c8",
    "BF16": ml_dtypes.bfloat16,
    "F8_E4M3": ml_dtypes.float8_e4m3fn,
    "F8_E5M2": ml_dtypes.float8_e5m2,
    "F8_E8M0": ml_dtypes.float8_e8m0fnu,
}


@pytest.mark.parametrize("kind", DTYPES)
def test_element_types(tmp_path, kind):
    """Each is read with its values, also where its bytes are not aligned; bools are 0 or 1."""
    from phlox_nn import _safetensors

    dtype = np.dtype(DTYPES[kind])
    values = np.array([1, 0, 1] if kind == "BOOL" else [1, 2, 1]).astype(dtype)
    data = bytes([255, 0, 2]) if kind == "BOOL" else values.tobytes()
    path = tmp_path / "a.safetensors"
    write(
        path,
        {"one": entry("U8", [1], 0, 1), "x": entry(kind, [3, 1], 1, 1 + len(data)), "none": entry(kind, [0], 1, 1)},
        b"\7" + data,
    )
    found = {stored.name: stored.read() for stored in _safetensors.stored(path)}
    assert found["x"].dtype == dtype and found["x"].shape == (3, 1) and found["none"].shape == (0,)
    np.testing.assert_array_equal(found["x"][:, 0], values)
    assert found["x"].flags.aligned and (kind != "BOOL" or found["x"].view(np.uint8).max() == 1)


@pytest.mark.parametrize("dtype", ["bool", "int64", "uint8", "complex64"])
def test_weights_that_are_no_floats_are_refused(dtype):
    weights = {**WEIGHTS, "weight": WEIGHTS["weight"].astype(dtype)}
    with pytest.raises(DtypeError, match=r"weight is \w+\[3,2\], the model needs floats") as excinfo:
        nn.load_torch(LAYER, weights)
    if dtype == "complex64":
        with pytest.raises(DtypeError, match="the model needs float32"):
            nn.load_torch(LAYER, weights, dtype="float32")
        return
    assert "dtype=phlox.numpy.float32" in str(excinfo.value)
    for requested in ("float32", jnp.bfloat16):
        params, _ = nn.load_torch(LAYER, weights, dtype=requested)
        assert params["weight"].dtype == params["bias"].dtype == jnp.dtype(requested)
        np.testing.assert_array_equal(params["weight"], weights["weight"].T.astype(requested))


def test_arrays_of_fixed_dtype_keep_it():
    class Counted(nn.Layer):
        def parameters(self):
            return {"scale": (nn.initializers.ones, (2,), jnp.float32), "free": (nn.initializers.ones, (2,))}

        def variables(self):
            return {"count": (nn.initializers.zeros, (), jnp.int8), "on": (nn.initializers.zeros, (), bool)}

    half = np.ones(2, np.float16)
    weights = {"scale": half, "free": half, "count": np.int64(100), "on": np.bool_(True)}
    for dtype in (None, jnp.bfloat16):
        params, state = nn.load_torch(Counted(), weights, dtype=dtype)
        assert phlox.tree.map(lambda x: x.dtype.name, (params, state)) == (
            {"scale": "float32", "free": "float16" if dtype is None else "bfloat16"},
            {"count": "int8", "on": "bool"},
        )
        assert state["count"] == 100 and state["on"]
    for name, value in (("count", np.int64(1000)), ("count", np.float32(1.5)), ("on", np.int64(1))):
        with pytest.raises(DtypeError, match=rf"{name} is \w+\[\], the model needs (int8|bool)"):
            nn.load_torch(Counted(), {**weights, name: value})


def test_dicts_that_hold_other_things():
    with pytest.raises(ArgumentError, match=r"weights\['epoch'\] is no tensor, but of type int") as excinfo:
        nn.load_torch(LAYER, {"epoch": 3, "model": WEIGHTS})
    assert "instead: weights['model']" in str(excinfo.value)
