"""Kernels in interpret mode. tests/libraries/programs/with_pallas.py compares kernels with those of the real jax."""

import functools

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox.errors import ArgumentError, OptionError, UnsupportedError
from phlox_compat.jax_internals import _pallas as pl
from phlox_compat.jax_internals._pallas import _tpu as pltpu, _triton as plgpu

call = functools.partial(pl.pallas_call, interpret=True)


def vector(n, dtype="float32"):
    return phlox.ShapeDtypeStruct((n,), dtype)


def add(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] + y_ref[...]


def test_blocks_that_do_not_fill_the_array():
    x = jnp.arange(10.0)
    block = pl.BlockSpec((4,), lambda i: (i,))
    run = call(add, vector(10), grid=3, in_specs=[block, block], out_specs=block)
    np.testing.assert_array_equal(run(x, x), 2 * x)
    np.testing.assert_array_equal(phlox.vmap(run, (0, None))(jnp.stack([x, -x]), x), [2 * x, 0 * x])
    assert phlox.grad(lambda x: run(x, x).sum())(x).tolist() == [2] * 10


def test_axes_of_the_grid_have_names():
    def kernel(o_ref):
        o_ref[...] = jnp.full(o_ref.shape, 10 * phlox.lax.axis_size("i") + phlox.lax.axis_size("j"))

    outputs = call(kernel, [vector(4, "int32")], grid=(("j", 4), ("i", 2)))()
    assert isinstance(outputs, tuple) and outputs[0].tolist() == [24] * 4


def test_the_grid_runs_with_its_last_axis_fastest():
    def kernel(o_ref, count):
        @pl.when((pl.program_id(0) == 0) & (pl.program_id(1) == 0))
        def _():
            count[0] = 0

        o_ref[pl.program_id(0), pl.program_id(1)] = count[0]
        count[0] += pl.num_programs(1) // 3

    order = call(
        kernel,
        phlox.ShapeDtypeStruct((2, 3), "int32"),
        grid=(2, 3),
        scratch_shapes={"count": pltpu.SMEM((1,), "int32")},
    )()
    assert order.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_memory_that_nothing_was_written_to():
    run = call(lambda o_ref, i_ref: None, (vector(2), vector(1, "int32")))
    floats, integers = run()
    assert np.isnan(floats).all() and integers[0] == np.iinfo(np.int32).min
    assert call(lambda x_ref, o_ref: None, vector(2), input_output_aliases={0: 0})(jnp.ones(2)).tolist() == [1, 1]
    assert call(lambda o_ref: None, [vector(0)], grid=0)()[0].shape == (0,)


def test_data_that_chooses_blocks():
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(3,),
        in_specs=[pl.BlockSpec((2,), lambda i, order: (order[i],))],
        out_specs=pl.BlockSpec((2,), lambda i, order: i),
    )
    run = call(lambda order, x_ref, o_ref: o_ref.set(x_ref[...]), vector(6), grid_spec=spec)
    assert run(jnp.array([2, 0, 2]), jnp.arange(6.0)).tolist() == [4, 5, 0, 1, 4, 5]


def test_windows_begin_at_any_element():
    spec = pl.BlockSpec((pl.Element(3, padding=(1, 1)),), lambda i: i)

    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.nansum(x_ref[...])

    out = call(kernel, vector(4), grid=4, in_specs=[spec], out_specs=pl.BlockSpec((None,), lambda i: i))(jnp.ones(4))
    assert out.tolist() == [2, 3, 3, 2]


def test_accesses_with_masks_and_atomic_operations():
    def kernel(x_ref, o_ref, before_ref):
        part, mask = pl.ds(3, 4), jnp.arange(4) < 2
        plgpu.store(o_ref.at[part], plgpu.load(x_ref.at[part], mask=mask, other=0) + 1, mask=mask)
        before_ref[0] = plgpu.atomic_add(o_ref, 0, 10.0)
        before_ref[1] = plgpu.atomic_cas(o_ref.at[1], 7.0, 8.0)
        before_ref[2] = plgpu.atomic_max(o_ref, 2, 5.0)
        before_ref[3] = plgpu.atomic_xchg(o_ref, 2, 6.0)

    x = jnp.arange(5.0)
    out, before = call(kernel, (vector(5), vector(4)), input_output_aliases={0: 0})(x)
    assert out.tolist() == [10, 1, 6, 4, 5] and before.tolist() == [0, 1, 2, 5]


def test_copies_and_inner_pipelines():
    def body(indices, x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2 + jnp.float32(indices[0])

    block = pl.BlockSpec((2,), lambda i: (i,))

    def kernel(x_ref, o_ref, buffer, semaphore):
        copy = pltpu.make_async_copy(x_ref.at[pl.ds(0, 4)], buffer, semaphore)
        copy.start()
        copy.wait()
        pipeline = pltpu.emit_pipeline(body, grid=(2,), in_specs=[block], out_specs=[block], _explicit_indices=True)
        pipeline(buffer, o_ref)

    memories = [pltpu.VMEM((4,), "float32"), pltpu.SemaphoreType.DMA]
    any_memory = pl.BlockSpec(memory_space=pl.ANY)
    run = pl.pallas_call(kernel, vector(4), in_specs=[any_memory], out_specs=any_memory, scratch_shapes=memories)
    with pltpu.force_tpu_interpret_mode():
        assert run(jnp.arange(6.0)).tolist() == [0, 2, 5, 7]


def test_loops_and_scopes():
    def kernel(o_ref):
        @pl.with_scoped(pltpu.VMEM((2,), "float32"))
        def scoped(first, scratch):
            scratch[...] = jnp.zeros_like(scratch)

            @pl.loop(1, 6, step=2)
            def _(i):
                scratch[0] += jnp.float32(i)

            scratch[1] = pl.loop(0, 3, init_carry=first)(lambda i, carry: carry * 2)
            return scratch[...]

        o_ref[...] = scoped(jnp.float32(5))

    assert call(kernel, vector(2))().tolist() == [9, 40]


def test_functions_on_arrays():
    x = jnp.arange(8, dtype=jnp.uint32).reshape(2, 4)
    bits = pltpu.bitcast(x, jnp.uint16)
    assert bits.shape == (4, 4) and (pltpu.bitcast(bits, jnp.uint32) == x).all()
    assert pltpu.roll(x, 1, 1)[0].tolist() == [3, 0, 1, 2]
    assert pltpu.roll(x, 1, 1, stride=1, stride_axis=0)[1].tolist() == [6, 7, 4, 5]
    assert pltpu.repeat(x, 2, 0).shape == (4, 4)
    assert (pl.cdiv(7, 2), pl.align_to(9, 4), pl.next_power_of_2(5), pl.strides_from_shape((2, 3))) == (
        4,
        12,
        8,
        (3, 1),
    )


def test_costs_are_counted_as_in_jax():
    """The numbers are those of jax 0.12.0.1."""

    def cost(fun, *args):
        estimate = pl.estimate_cost(fun, *args)
        return estimate.flops, estimate.transcendentals, estimate.bytes_accessed

    large = (
        phlox.ShapeDtypeStruct((400_000, 800_000), "bfloat16"),
        phlox.ShapeDtypeStruct((800_000, 900_000), "bfloat16"),
    )
    x = jnp.ones(10)
    assert cost(lambda x, y: jnp.exp(x + y), x, x) == (10, 10, 120)
    assert cost(phlox.jit(jnp.matmul), *large) == (576_000_000_000_000_000, 0, 2_800_000_000_000)
    assert cost(jnp.matmul, jnp.ones((7, 3, 9)), jnp.ones((7, 9, 2))) == (756, 0, 1428)
    assert [cost(lambda x: phlox.lax.integer_pow(x, y), x)[0] for y in (1, 2, 7, 8, 9, -3)] == [0, 20, 50, 40, 50, 40]


def test_mistakes_are_named():
    x = jnp.ones(4)
    with pytest.raises(OptionError, match="Only interpret mode is supported"):
        pl.pallas_call(add, vector(4))(x, x)
    with pytest.raises(OptionError, match=r"should return None\. It returns int"):
        call(lambda x_ref, o_ref: 3, vector(4))(x)
    with pytest.raises(ArgumentError, match="in_specs has 1 entries, for 2 arrays"):
        call(add, vector(4), in_specs=[pl.BlockSpec()])(x, x)
    with pytest.raises(OptionError, match="the index_map of input 0 must return 1 values"):
        call(add, vector(4), grid=2, in_specs=[pl.BlockSpec((2,), lambda i: (i, i)), pl.BlockSpec()])(x, x)
    with pytest.raises(OptionError, match=r"the index_map of input 0 must return integer scalars, got 5\.0"):
        call(add, vector(4), grid=2, in_specs=[pl.BlockSpec((2,), lambda i: 5.0), pl.BlockSpec()])(x, x)
    with pytest.raises(OptionError, match="in_specs must be a tuple or a list"):
        call(add, vector(4), in_specs=pl.BlockSpec())
    for aliases, message in (
        ({2: 0}, "of 2 inputs"),
        ({1: 1}, "with 1 outputs"),
        ({0: 0}, r"int32\[4\] and float32\[4\]"),
    ):
        with pytest.raises(OptionError, match=message):
            call(add, vector(4), input_output_aliases=aliases)(x.astype("int32"), x)
    with pytest.raises(OptionError, match="the block shape of input 0 must have the same number of dimensions"):
        call(add, vector(4), grid=2, in_specs=[pl.BlockSpec((2, 2), lambda i: (i, i)), pl.BlockSpec()])(x, x)
    with pytest.raises(OptionError, match="no kernel of pallas_call runs here"):
        pl.program_id(0)
    with pytest.raises(OptionError, match="axis=1 of a grid with 1 axes"):
        call(lambda o_ref: o_ref.set(pl.program_id(1)), vector(4), grid=2)()
    with pytest.raises(OptionError, match="a grid_spec beside grid"):
        pl.pallas_call(add, vector(4), grid_spec=pl.GridSpec(), grid=2)


def test_references_that_begin_with_values():
    def step(refs):
        refs["b"][...] = refs["a"][...] * 2
        refs["a"][0] = 7.0

    result = pl.run_state(step)({"a": jnp.ones(3), "b": jnp.zeros(3)})
    assert {name: x.tolist() for name, x in result.items()} == {"a": [7, 1, 1], "b": [2, 2, 2]}
    double = pl.run_state(lambda ref: ref.__setitem__(0, 2 * ref[0]))
    assert phlox.grad(lambda x: double(x).sum())(jnp.ones(2)).tolist() == [2, 1]


CORES = pltpu.TensorCoreMesh(axis_name="core", num_cores=2)


def test_kernels_of_a_mesh():
    """The cores run one after the other: the second sees what the first has written."""

    @pl.kernel(out_type=vector(3), mesh=CORES, scratch_types=[pltpu.VMEM((), "float32")], interpret=True)
    def rows(x_ref, o_ref, total):
        core = phlox.lax.axis_index("core")
        total[...] = x_ref[core].sum()
        o_ref[core] = total[...]

        @pltpu.run_on_first_core("core")
        def _():
            o_ref[2] = 1.0

        o_ref[2] = 10 * o_ref[2] + core.astype("float32")

    assert rows.__name__ == "rows"
    assert rows(jnp.array([[1.0, 2.0], [3.0, 4.0]])).tolist() == [3, 7, 101]
    with pytest.raises(OptionError, match="interpret"):
        pl.kernel(add, out_type=vector(3), mesh=CORES)(jnp.ones(3), jnp.ones(3))


def test_kernels_of_several_meshes():
    def first(x_ref, o_ref):
        o_ref[0] = x_ref[0]

    def second(x_ref, o_ref):
        o_ref[1] = o_ref[0] + 1

    meshes = [pltpu.create_tensorcore_mesh("a"), pltpu.create_tensorcore_mesh("b")]
    run = pl.kernel([first, second], out_type=(vector(2),), mesh=meshes, interpret=True)
    assert run(jnp.array([4.0]))[0].tolist() == [4, 5]
    with pytest.raises(ArgumentError, match="2 kernels for 1 meshes"):
        pl.kernel([first, second], out_type=vector(2), mesh=meshes[:1])
    with pytest.raises(OptionError, match="should return None"):
        pl.kernel(lambda x, o: 1, out_type=vector(2), mesh=CORES, interpret=True)(jnp.ones(2))


def test_semaphores_count():
    def kernel(o_ref, semaphores):
        pl.semaphore_signal(semaphores.at[1], 3)
        o_ref[0] = pl.semaphore_read(semaphores.at[1])
        pl.semaphore_wait(semaphores.at[1], 2)
        pl.semaphore_wait(semaphores.at[1], decrement=False)
        o_ref[1] = pl.semaphore_read(semaphores.at[1])
        o_ref[2] = pl.semaphore_read(semaphores.at[0])

    counts = call(kernel, vector(3, "int32"), scratch_shapes=[pltpu.SemaphoreType.REGULAR((2,))])()
    assert counts.tolist() == [3, 1, 0]
    with pytest.raises(UnsupportedError, match="other devices"):
        pl.semaphore_signal(None, device_id=1)


def test_copies_of_trees_and_sums():
    def kernel(x_ref, o_ref, p_ref):
        pltpu.sync_copy((x_ref, x_ref), (o_ref, p_ref))
        pltpu.sync_copy(x_ref, o_ref, add=True)
        pltpu.async_copy(x_ref.at[0:1], p_ref.at[1:2], add=True).wait()

    o, p = call(kernel, (vector(2), vector(2)))(jnp.array([1.0, 2.0]))
    assert o.tolist() == [2, 4] and p.tolist() == [1, 3]


def test_bits_along_other_axes():
    x = jnp.arange(8, dtype=jnp.int32).reshape(2, 4)
    halves = pltpu.bitcast(x, jnp.int16, -1)
    np.testing.assert_array_equal(halves, np.asarray(x).view(np.int16))
    np.testing.assert_array_equal(pltpu.bitcast(halves, jnp.int32, 1), x)


def test_small_helpers():
    assert pl.align_to(5, alignment=4) == 8 and pl.broadcast_to(a=jnp.ones(1), shape=(2,)).shape == (2,)
    assert pl.CostEstimate(1, 2, 3).to_json().startswith(b'{"flops": 1')
    assert not pltpu.is_tpu_device()
    with pl.enable_poison_buffers(True), pl.enable_debug_checks(new_val=False):
        pl.debug_check(False, "not checked")


def test_texts_of_memories_are_those_of_jax():
    assert [str(pl.MemorySpace.ANY), str(pltpu.MemorySpace.VMEM), repr(pltpu.MemorySpace.SEMAPHORE)] == [
        "any",
        "vmem",
        "SEMAPHORE",
    ]
