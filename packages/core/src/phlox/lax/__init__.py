"""``phlox.lax``: operations close to StableHLO, control flow, and collectives over mapped axes.

Unlike `phlox.numpy`, these functions do not promote dtypes. The primitives themselves are here too, as ``sin_p``,
``dot_general_p`` and so on, for code that implements transformations.
"""

from typing import Any as _Any

from .._base.public_names import on_demand as _on_demand, publish as _publish
from .._ops import jax_names as _jax_names, primitive_of_jax as _primitive_of_jax
from ._declared import *  # noqa: F403  (each public name there is one here)

with _on_demand(__name__):
    from . import linalg as linalg
    from ._associative_scan import associative_scan as associative_scan
    from ._axis_reductions import (
        cumlogsumexp as cumlogsumexp,
        cummax as cummax,
        cummin as cummin,
        cumprod as cumprod,
        cumsum as cumsum,
        reduce_and as reduce_and,
        reduce_max as reduce_max,
        reduce_min as reduce_min,
        reduce_or as reduce_or,
        reduce_prod as reduce_prod,
        reduce_sum as reduce_sum,
        reduce_xor as reduce_xor,
    )
    from ._branches import cond as cond, switch as switch
    from ._contraction import (
        DotAlgorithm as DotAlgorithm,
        DotAlgorithmPreset as DotAlgorithmPreset,
        DotDimensionNumbers as DotDimensionNumbers,
        Precision as Precision,
        PrecisionLike as PrecisionLike,
        dot as dot,
        dot_general as dot_general,
    )
    from ._conveniences import (
        approx_max_k as approx_max_k,
        approx_min_k as approx_min_k,
        batch_matmul as batch_matmul,
        broadcast_shapes as broadcast_shapes,
        broadcast_to_rank as broadcast_to_rank,
        collapse as collapse,
        dtype as dtype,
        dynamic_index_in_dim as dynamic_index_in_dim,
        dynamic_update_index_in_dim as dynamic_update_index_in_dim,
        dynamic_update_slice_in_dim as dynamic_update_slice_in_dim,
        empty as empty,
        full as full,
        full_like as full_like,
        index_in_dim as index_in_dim,
        top_k as top_k,
    )
    from ._convolution import (
        ConvDimensionNumbers as ConvDimensionNumbers,
        conv as conv,
        conv_general_dilated as conv_general_dilated,
        conv_general_dilated_local as conv_general_dilated_local,
        conv_general_dilated_patches as conv_general_dilated_patches,
        conv_transpose as conv_transpose,
        conv_with_general_padding as conv_with_general_padding,
        padtype_to_pads as padtype_to_pads,
    )
    from ._convolution_shapes import (
        ConvGeneralDilatedDimensionNumbers as ConvGeneralDilatedDimensionNumbers,
        conv_dimension_numbers as conv_dimension_numbers,
        conv_general_permutations as conv_general_permutations,
        conv_general_shape_tuple as conv_general_shape_tuple,
        conv_shape_tuple as conv_shape_tuple,
        conv_transpose_shape_tuple as conv_transpose_shape_tuple,
    )
    from ._elementwise import (
        AccuracyMode as AccuracyMode,
        Tolerance as Tolerance,
        clamp as clamp,
        conj as conj,
        integer_pow as integer_pow,
        mul as mul,
        mulhi as mulhi,
        nextafter as nextafter,
        pow as pow,
        reciprocal as reciprocal,
        select as select,
        select_n as select_n,
        stop_gradient as stop_gradient,
    )
    from ._exchange import (
        all_gather as all_gather,
        all_to_all as all_to_all,
        pbroadcast as pbroadcast,
        pcast as pcast,
        ppermute as ppermute,
        pshuffle as pshuffle,
        psum_scatter as psum_scatter,
        pswapaxes as pswapaxes,
        pvary as pvary,
        ragged_all_to_all as ragged_all_to_all,
    )
    from ._fft import FftType as FftType, fft as fft
    from ._fixed_point import fixed_point as fixed_point
    from ._futures import psum_scatter_start as psum_scatter_start
    from ._loops import fori_loop as fori_loop, while_loop as while_loop
    from ._map import map as map
    from ._more import (
        RandomAlgorithm as RandomAlgorithm,
        RoundingMethod as RoundingMethod,
        broadcast_like as broadcast_like,
        index_take as index_take,
        rng_bit_generator as rng_bit_generator,
        rng_uniform as rng_uniform,
        round as round,
        scatter as scatter,
        scatter_add as scatter_add,
        scatter_apply as scatter_apply,
        scatter_max as scatter_max,
        scatter_min as scatter_min,
        scatter_mul as scatter_mul,
        scatter_sub as scatter_sub,
        shape_as_value as shape_as_value,
        split as split,
        stack as stack,
        tile as tile,
        unstack as unstack,
    )
    from ._order import argmax as argmax, argmin as argmin, sort as sort, sort_key_val as sort_key_val
    from ._parallel import (
        axis_index as axis_index,
        axis_size as axis_size,
        pmax as pmax,
        pmean as pmean,
        pmin as pmin,
        psum as psum,
    )
    from ._polynomials import polynomial as polynomial
    from ._ragged import (
        RaggedDotDimensionNumbers as RaggedDotDimensionNumbers,
        ragged_dot as ragged_dot,
        ragged_dot_general as ragged_dot_general,
        scaled_dot as scaled_dot,
    )
    from ._reductions import (
        reduce as reduce,
        reduce_precision as reduce_precision,
        reduce_window as reduce_window,
        reduce_window_shape_tuple as reduce_window_shape_tuple,
    )
    from ._scan import scan as scan
    from ._slices import (
        GatherDimensionNumbers as GatherDimensionNumbers,
        GatherScatterMode as GatherScatterMode,
        ScatterDimensionNumbers as ScatterDimensionNumbers,
        dynamic_slice as dynamic_slice,
        dynamic_slice_in_dim as dynamic_slice_in_dim,
        dynamic_update_slice as dynamic_update_slice,
        gather as gather,
        slice as slice,
        slice_in_dim as slice_in_dim,
    )
    from ._solves import custom_linear_solve as custom_linear_solve, custom_root as custom_root
    from ._special import (
        betainc as betainc,
        igamma as igamma,
        igamma_grad_a as igamma_grad_a,
        igammac as igammac,
        polygamma as polygamma,
        random_gamma_grad as random_gamma_grad,
        zeta as zeta,
    )
    from ._staging import (
        composite as composite,
        dce_sink as dce_sink,
        optimization_barrier as optimization_barrier,
        platform_dependent as platform_dependent,
        stage as stage,
        with_sharding_constraint as with_sharding_constraint,
    )
    from ._structural import (
        bitcast_convert_type as bitcast_convert_type,
        broadcast as broadcast,
        broadcast_in_dim as broadcast_in_dim,
        broadcasted_iota as broadcasted_iota,
        concatenate as concatenate,
        convert_element_type as convert_element_type,
        expand_dims as expand_dims,
        iota as iota,
        pad as pad,
        reshape as reshape,
        rev as rev,
        squeeze as squeeze,
        transpose as transpose,
    )
    from ._tokens import after_all as after_all, create_token as create_token, precv as precv, psend as psend


def _primitive(name: str) -> _Any:
    """A primitive under JAX's name, such as ``add_p``."""
    primitive: _Any = _primitive_of_jax(name)
    if primitive is None and name.endswith("_p"):
        from ._composed import COMPOSED

        primitive = COMPOSED.get(name)
    return primitive


def __dir__() -> list[str]:
    return sorted({*globals()["__all__"], *_jax_names()})


_publish(__name__, other=_primitive)
