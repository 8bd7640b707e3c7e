"""`show`, `explain_memory`, `explain_sharding` and `where_time`: tables by path, and by the user's line."""

import numpy as np

import phlox
import phlox.numpy as jnp
from phlox import NamedSharding, P
from phlox.sharding import AxisType


def row(table, start):
    (found,) = [cells for cells in table.rows if cells[0].startswith(start)]
    return found


def test_show_describes_arrays():
    tree = {
        "w": np.array([[1.0, 0.0], [np.nan, -3.0]], np.float32),
        "i": jnp.arange(3),
        "s": "text",
        "h": np.float16(2),
    }
    table = phlox.show(tree)
    assert row(table, "['w']") == ("['w']", "f32[2,2]", "4", "16", "-3", "-0.6667", "1", "25 %", "25 %")
    assert row(table, "['i']")[4:] == ("0", "1", "2", "", "33.3 %")
    assert row(table, "['s']")[1] == "str"
    assert table.title == "8 elements in 4 leaves, 30 bytes"


def test_show_of_types_keys_and_traced_values():
    texts = []
    phlox.jit(lambda x: texts.append(str(phlox.show({"x": x}))))(jnp.ones((2, 3)))
    assert "f32[2,3]" in texts[0] and "24" in texts[0]
    assert "f32[5]" in str(phlox.show(phlox.ShapeDtypeStruct((5,), "float32")))
    assert "key<fry>[2]" in str(phlox.show(phlox.random.split(phlox.random.key(0))))
    assert "bf16[0,3]" in str(phlox.show(jnp.ones((0, 3), "bfloat16")))


def test_memory_of_arguments_results_and_temporaries():
    def f(used, unused, scale):
        products = jnp.sort(used[:, None] * used, axis=0)
        return jnp.sort(products.sum(axis=1)) * scale

    table = phlox.explain_memory(f, jnp.ones(512), jnp.ones(3), 2.0)
    assert table.line.endswith("test_explanations.py:40") or "products" in table.title
    kinds = {cells[1] for cells in table.rows}
    assert {"argument", "result", "temporary"} <= kinds
    assert any(cells[2] == "argument used" and cells[0] == "2,048" for cells in table.rows)
    assert not any("unused" in cells[2] for cells in table.rows)


def test_transfers_between_devices():
    mesh = phlox.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))
    x = phlox.device_put(jnp.ones((64, 8)), NamedSharding(mesh, P("d", None)))

    def f(x):
        y = x * 2.0
        return y.sum(axis=0)

    table = phlox.explain_sharding(f, x)
    (cells,) = table.rows
    assert cells[:3] == ("32", "1", "all-reduce") and "y.sum(axis=0)" in cells[3]
    assert "nothing" in phlox.explain_sharding(lambda x: x * 2, x).title


def test_run_time_by_line():
    @phlox.jit
    def f(x):
        y = x @ x
        return jnp.sort(y, axis=0)

    table = phlox.where_time(f, jnp.ones((200, 200)), repeat=2)
    assert {"tracing", "lowering", "compiling"} <= set(table.title.replace(",", "").split())
    assert any("jnp.sort" in cells[2] for cells in table.rows)
    assert "test_explanations.py" in table.line
