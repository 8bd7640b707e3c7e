"""The table of a model: what is in it, what it costs, and that nothing runs."""

import math

import phlox
import phlox.numpy as jnp
import phlox_nn as nn

X = phlox.ShapeDtypeStruct((2, 4), "float32")


def test_rows_tell_of_every_layer_that_is_called():
    model = nn.Sequential(nn.Linear(4, 8), nn.relu, nn.Residual(nn.Linear(8, 8)), nn.Dropout(0.5))
    table = nn.summary(model, X)
    assert [row.path for row in table.rows] == ["", "0", "2.layer", "2", "3"]
    linear = table.rows[1]
    assert (linear.layer, linear.output, linear.parameters, linear.bytes) == ("Linear(4, 8)", "f32[2,8]", 40, 160)
    assert linear.flops == 2 * 2 * 4 * 8 + 2 * 8
    params = model.init(phlox.random.key(0))
    assert table.parameters == sum(math.prod(x.shape) for x in phlox.tree.leaves(params)) == 112
    assert table.flops >= sum(row.flops for row in table.rows if row.path in ("0", "2"))


def test_nothing_runs():
    size = 100_000
    table = nn.summary(nn.Linear(size, size), phlox.ShapeDtypeStruct((size, size), "float32"))
    assert table.parameters == size**2 + size and table.flops > 2e15


def test_loops_count_all_their_turns():
    block = nn.Residual(nn.MLP((4, 8, 4)))
    one = nn.summary(block, X).flops
    for count, unroll in ((1, 1), (6, 1), (7, 3), (3, 2)):
        flops = nn.summary(nn.Stack(block, count, unroll=unroll), X).flops
        assert count * one <= flops <= count * one + 40 * (count + 1)
    outer = nn.summary(nn.Stack(nn.Stack(block, 3), 5), X)
    assert 15 * one <= outer.flops <= 15 * one + 1000
    assert next(row for row in outer.rows if row.path == "block.block").flops == one
    assert outer.parameters == 15 * nn.summary(block, X).parameters


def test_state_keys_and_dtypes():
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm(8), nn.Dropout(0.5))
    table = nn.summary(model, jnp.ones((2, 4)), train=True, dtype="bfloat16")
    assert table.rows[1].output == "bf16[2,8]"
    cached = nn.MultiHeadAttention(4, 2, causal=True, cache_length=8)
    assert nn.summary(cached, jnp.ones((1, 1, 4)), method="decode").rows[0].output == "f32[1,1,4]"
    lstm = nn.summary(nn.LSTM(4, 8), jnp.ones((2, 5, 4)), lengths=jnp.array([1, 2]), return_carry=True)
    assert lstm.rows[0].output == "(f32[2,5,8], (f32[2,8], f32[2,8]))"


def test_forms_of_the_table(capsys):
    table = nn.summary(nn.Sequential(nn.Linear(4, 8), nn.relu), X)
    assert str(table).splitlines()[-1].startswith("total") and repr(table) == str(table)
    assert "<td>Linear(4, 8)</td>" in table._repr_html_() and table._repr_html_().count("<tr>") == 3
    table.show()
    assert "parameters" in capsys.readouterr().out
