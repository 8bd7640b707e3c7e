"""The functions of `phlox.numpy` that the operators and methods of arrays call.

Arrays are defined below `phlox.numpy`, and their methods call it. This module is the one place where a lower layer
names a higher one. It looks a function up when a method first needs it, and keeps it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..numpy import (
        abs as abs,
        all as all,
        any as any,
        argmax as argmax,
        argmin as argmin,
        argpartition as argpartition,
        argsort as argsort,
        asarray as asarray,
        astype as astype,
        choose as choose,
        clip as clip,
        compress as compress,
        conjugate as conjugate,
        cumprod as cumprod,
        cumsum as cumsum,
        diagonal as diagonal,
        divmod as divmod,
        dot as dot,
        equal as equal,
        floor_divide as floor_divide,
        greater as greater,
        greater_equal as greater_equal,
        imag as imag,
        invert as invert,
        left_shift as left_shift,
        less as less,
        less_equal as less_equal,
        matrix_transpose as matrix_transpose,
        max as max,
        mean as mean,
        min as min,
        nonzero as nonzero,
        not_equal as not_equal,
        positive as positive,
        power as power,
        prod as prod,
        ptp as ptp,
        ravel as ravel,
        real as real,
        remainder as remainder,
        repeat as repeat,
        right_shift as right_shift,
        round as round,
        searchsorted as searchsorted,
        sort as sort,
        squeeze as squeeze,
        std as std,
        sum as sum,
        swapaxes as swapaxes,
        take as take,
        trace as trace,
        transpose as transpose,
        true_divide as true_divide,
        var as var,
    )
    from ..numpy._arrays.functions import (
        add as add,
        array_namespace as array_namespace,
        bitwise_and as bitwise_and,
        bitwise_or as bitwise_or,
        bitwise_xor as bitwise_xor,
        byteswap as byteswap,
        compare as compare,
        contains as contains,
        iterate as iterate,
        matmul as matmul,
        multiply as multiply,
        negative as negative,
        operate as operate,
        operate_reflected as operate_reflected,
        reshape as reshape,
        subtract as subtract,
        to_device as to_device,
    )
    from ..numpy._creation.view import view as view
    from ..numpy._indexing.at import At as At
    from ..numpy._indexing.ds import getitem as getitem
else:

    def __getattr__(name: str) -> Any:
        from .. import numpy
        from ..numpy._arrays import functions

        function = getattr(functions, name, None)
        if function is None:
            function = getattr(numpy, name)
        globals()[name] = function
        return function
