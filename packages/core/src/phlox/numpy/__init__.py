"""``phlox.numpy``: NumPy's functions on arrays of devices, with JAX's rules for dtypes. Usually imported as ``jnp``."""

import numpy as _np

from .._base.public_names import on_demand as _on_demand, publish as _publish
from .._ir.dtypes import issubdtype as issubdtype
from .._ir.promotion import promote_types as promote_types
from .._xla.array import Array as _Array
from ._arrays import functions as _functions  # noqa: F401  (gives arrays the functions that their methods call)
from ._arrays.with_out_sharding import (
    arange as arange,
    broadcast_to as broadcast_to,
    empty as empty,
    full as full,
    full_like as full_like,
    ones as ones,
    ones_like as ones_like,
    ravel as ravel,
    reshape as reshape,
    zeros as zeros,
    zeros_like as zeros_like,
)
from ._creation.dtypes import (
    bfloat16 as bfloat16,
    bool_ as bool_,
    can_cast as can_cast,
    cdouble as cdouble,
    character as character,
    complex64 as complex64,
    complex128 as complex128,
    complex_ as complex_,
    complexfloating as complexfloating,
    csingle as csingle,
    double as double,
    dtype as dtype,
    finfo as finfo,
    flexible as flexible,
    float4_e2m1fn as float4_e2m1fn,
    float6_e2m3fn as float6_e2m3fn,
    float6_e3m2fn as float6_e3m2fn,
    float8_e3m4 as float8_e3m4,
    float8_e4m3 as float8_e4m3,
    float8_e4m3b11fnuz as float8_e4m3b11fnuz,
    float8_e4m3fn as float8_e4m3fn,
    float8_e4m3fnuz as float8_e4m3fnuz,
    float8_e5m2 as float8_e5m2,
    float8_e5m2fnuz as float8_e5m2fnuz,
    float8_e8m0fnu as float8_e8m0fnu,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    float_ as float_,
    floating as floating,
    generic as generic,
    iinfo as iinfo,
    inexact as inexact,
    int1 as int1,
    int2 as int2,
    int4 as int4,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    int_ as int_,
    integer as integer,
    iscomplexobj as iscomplexobj,
    isdtype as isdtype,
    isrealobj as isrealobj,
    isscalar as isscalar,
    number as number,
    object_ as object_,
    result_type as result_type,
    signedinteger as signedinteger,
    single as single,
    uint as uint,
    uint1 as uint1,
    uint2 as uint2,
    uint4 as uint4,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
    unsignedinteger as unsignedinteger,
)
from ._creation.fill import (
    empty_like as empty_like,
    eye as eye,
    identity as identity,
    linspace as linspace,
    tri as tri,
)
from ._creation.from_data import (
    array as array,
    asarray as asarray,
    astype as astype,
    copy as copy,
    from_dlpack as from_dlpack,
)
from ._elementwise.binary import (
    arctan2 as arctan2,
    atan2 as atan2,
    bitwise_left_shift as bitwise_left_shift,
    bitwise_right_shift as bitwise_right_shift,
    divide as divide,
    float_power as float_power,
    floor_divide as floor_divide,
    fmod as fmod,
    hypot as hypot,
    left_shift as left_shift,
    mod as mod,
    nextafter as nextafter,
    pow as pow,
    power as power,
    remainder as remainder,
    right_shift as right_shift,
    true_divide as true_divide,
)
from ._elementwise.choose import (
    around as around,
    clip as clip,
    nan_to_num as nan_to_num,
    rint as rint,
    round as round,
)
from ._elementwise.comparisons import (
    equal as equal,
    greater as greater,
    greater_equal as greater_equal,
    less as less,
    less_equal as less_equal,
    not_equal as not_equal,
)
from ._elementwise.inexact import *  # noqa: F403  (each public name there is one here)
from ._elementwise.unary import (
    abs as abs,
    absolute as absolute,
    bitwise_invert as bitwise_invert,
    bitwise_not as bitwise_not,
    ceil as ceil,
    conj as conj,
    conjugate as conjugate,
    fabs as fabs,
    floor as floor,
    imag as imag,
    invert as invert,
    isfinite as isfinite,
    isinf as isinf,
    isnan as isnan,
    logical_not as logical_not,
    positive as positive,
    real as real,
    sign as sign,
    signbit as signbit,
    square as square,
    trunc as trunc,
)
from ._indexing.where import where as where
from ._linalg.products import (
    dot as dot,
    inner as inner,
    matmul as matmul,
    outer as outer,
    tensordot as tensordot,
    trace as trace,
    vdot as vdot,
)
from ._manipulation.broadcasting import broadcast_arrays as broadcast_arrays, broadcast_shapes as broadcast_shapes
from ._manipulation.joining import (
    array_split as array_split,
    concat as concat,
    concatenate as concatenate,
    hstack as hstack,
    split as split,
    stack as stack,
    vstack as vstack,
)
from ._manipulation.shapes import (
    atleast_1d as atleast_1d,
    atleast_2d as atleast_2d,
    expand_dims as expand_dims,
    flip as flip,
    matrix_transpose as matrix_transpose,
    moveaxis as moveaxis,
    ndim as ndim,
    permute_dims as permute_dims,
    shape as shape,
    size as size,
    squeeze as squeeze,
    swapaxes as swapaxes,
    transpose as transpose,
)
from ._statistics.moments import average as average, mean as mean, std as std, var as var
from ._statistics.reductions import (
    all as all,
    amax as amax,
    amin as amin,
    any as any,
    argmax as argmax,
    argmin as argmin,
    count_nonzero as count_nonzero,
    cumprod as cumprod,
    cumsum as cumsum,
    max as max,
    min as min,
    minmax as minmax,
    prod as prod,
    ptp as ptp,
    sum as sum,
)

# Names about printing, saving and indexing are NumPy's own objects.
ComplexWarning = _np.exceptions.ComplexWarning
array_repr, array_str, iterable = _np.array_repr, _np.array_str, _np.iterable
get_printoptions, set_printoptions, printoptions = _np.get_printoptions, _np.set_printoptions, _np.printoptions
save, savez = _np.save, _np.savez

bool = bool_
pi = _np.pi
e = _np.e
euler_gamma = _np.euler_gamma
inf = _np.inf
nan = _np.nan
newaxis = None
ndarray = _Array

# Imported when a name is first read: few programs need these modules, and `import phlox` stays fast.
with _on_demand(__name__):
    from . import fft as fft, linalg as linalg
    from ._analysis.calculus import (
        diff as diff,
        ediff1d as ediff1d,
        gradient as gradient,
        interp as interp,
        trapezoid as trapezoid,
    )
    from ._analysis.convolve import convolve as convolve, correlate as correlate
    from ._analysis.polyfit import polyfit as polyfit
    from ._analysis.polynomials import (
        poly as poly,
        polyadd as polyadd,
        polyder as polyder,
        polydiv as polydiv,
        polyint as polyint,
        polymul as polymul,
        polysub as polysub,
        polyval as polyval,
        roots as roots,
    )
    from ._creation.array_api import (
        __array_api_version__ as __array_api_version__,
        __array_namespace_info__ as __array_namespace_info__,
    )
    from ._creation.files import (
        frombuffer as frombuffer,
        fromfile as fromfile,
        fromiter as fromiter,
        fromstring as fromstring,
        load as load,
    )
    from ._creation.grids import (
        geomspace as geomspace,
        indices as indices,
        ix_ as ix_,
        logspace as logspace,
        meshgrid as meshgrid,
        mgrid as mgrid,
        ogrid as ogrid,
    )
    from ._creation.windows import (
        bartlett as bartlett,
        blackman as blackman,
        hamming as hamming,
        hanning as hanning,
        i0 as i0,
        kaiser as kaiser,
    )
    from ._elementwise.angles import (
        angle as angle,
        deg2rad as deg2rad,
        degrees as degrees,
        rad2deg as rad2deg,
        radians as radians,
        sinc as sinc,
        unwrap as unwrap,
    )
    from ._elementwise.floats import (
        copysign as copysign,
        fix as fix,
        fmax as fmax,
        fmin as fmin,
        frexp as frexp,
        heaviside as heaviside,
        iscomplex as iscomplex,
        isneginf as isneginf,
        isposinf as isposinf,
        isreal as isreal,
        ldexp as ldexp,
        modf as modf,
        spacing as spacing,
    )
    from ._elementwise.integers import (
        bitwise_count as bitwise_count,
        divmod as divmod,
        gcd as gcd,
        lcm as lcm,
        packbits as packbits,
        unpackbits as unpackbits,
    )
    from ._elementwise.ufunc import frompyfunc as frompyfunc, ufunc as ufunc
    from ._elementwise.ufuncs import (
        add as add,
        bitwise_and as bitwise_and,
        bitwise_or as bitwise_or,
        bitwise_xor as bitwise_xor,
        logaddexp as logaddexp,
        logaddexp2 as logaddexp2,
        logical_and as logical_and,
        logical_or as logical_or,
        logical_xor as logical_xor,
        maximum as maximum,
        minimum as minimum,
        multiply as multiply,
        negative as negative,
        subtract as subtract,
    )
    from ._functions.apply import (
        apply_along_axis as apply_along_axis,
        apply_over_axes as apply_over_axes,
        choose as choose,
        fromfunction as fromfunction,
        piecewise as piecewise,
        select as select,
    )
    from ._functions.vectorize import vectorize as vectorize
    from ._indexing.flat_places import ravel_multi_index as ravel_multi_index
    from ._indexing.places import (
        argwhere as argwhere,
        compress as compress,
        extract as extract,
        flatnonzero as flatnonzero,
        nonzero as nonzero,
        place as place,
        put as put,
        put_along_axis as put_along_axis,
    )
    from ._indexing.reading import (
        diag as diag,
        diagonal as diagonal,
        take as take,
        take_along_axis as take_along_axis,
    )
    from ._indexing.tricks import (
        c_ as c_,
        index_exp as index_exp,
        mask_indices as mask_indices,
        r_ as r_,
        s_ as s_,
        unravel_index as unravel_index,
    )
    from ._linalg.axis_products import (
        cross as cross,
        kron as kron,
        matvec as matvec,
        vecdot as vecdot,
        vecmat as vecmat,
    )
    from ._linalg.einsum import einsum as einsum, einsum_path as einsum_path
    from ._linalg.triangles import (
        diag_indices as diag_indices,
        diag_indices_from as diag_indices_from,
        diagflat as diagflat,
        fill_diagonal as fill_diagonal,
        tril as tril,
        tril_indices as tril_indices,
        tril_indices_from as tril_indices_from,
        triu as triu,
        triu_indices as triu_indices,
        triu_indices_from as triu_indices_from,
        vander as vander,
    )
    from ._manipulation.edit import (
        append as append,
        delete as delete,
        insert as insert,
        resize as resize,
        trim_zeros as trim_zeros,
    )
    from ._manipulation.pad import pad as pad
    from ._manipulation.repeat import repeat as repeat, roll as roll, tile as tile
    from ._manipulation.stacks import (
        atleast_3d as atleast_3d,
        block as block,
        column_stack as column_stack,
        dsplit as dsplit,
        dstack as dstack,
        fliplr as fliplr,
        flipud as flipud,
        hsplit as hsplit,
        rollaxis as rollaxis,
        rot90 as rot90,
        unstack as unstack,
        vsplit as vsplit,
    )
    from ._searches.compare import (
        allclose as allclose,
        array_equal as array_equal,
        array_equiv as array_equiv,
        isclose as isclose,
    )
    from ._searches.orders import (
        argpartition as argpartition,
        lexsort as lexsort,
        partition as partition,
        sort_complex as sort_complex,
        top_k as top_k,
    )
    from ._searches.searching import bincount as bincount, digitize as digitize, searchsorted as searchsorted
    from ._searches.setops import intersect1d as intersect1d, setdiff1d as setdiff1d, setxor1d as setxor1d
    from ._searches.sets import (
        isin as isin,
        union1d as union1d,
        unique as unique,
        unique_all as unique_all,
        unique_counts as unique_counts,
        unique_inverse as unique_inverse,
        unique_values as unique_values,
    )
    from ._searches.sorting import argsort as argsort, sort as sort
    from ._statistics.covariance import corrcoef as corrcoef, cov as cov
    from ._statistics.cumulative import cumulative_prod as cumulative_prod, cumulative_sum as cumulative_sum
    from ._statistics.histogram import (
        histogram as histogram,
        histogram2d as histogram2d,
        histogram_bin_edges as histogram_bin_edges,
        histogramdd as histogramdd,
    )
    from ._statistics.nan import (
        nanargmax as nanargmax,
        nanargmin as nanargmin,
        nancumprod as nancumprod,
        nancumsum as nancumsum,
        nanmax as nanmax,
        nanmean as nanmean,
        nanmin as nanmin,
        nanprod as nanprod,
        nanstd as nanstd,
        nansum as nansum,
        nanvar as nanvar,
    )
    from ._statistics.quantile import (
        median as median,
        nanmedian as nanmedian,
        nanpercentile as nanpercentile,
        nanquantile as nanquantile,
        percentile as percentile,
        quantile as quantile,
    )

_publish(__name__)
