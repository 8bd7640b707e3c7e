"""The class `Layer`: a configuration (frozen dataclass) that becomes a function when it is bound to parameters.

    class Scale(nn.Layer):
        size: int

        def parameters(self):
            return {"scale": (nn.initializers.ones, (self.size,))}

        def __call__(self, x):
            return x * self.scale

`Layer.bind` makes a copy of a layer with its own arrays as attributes, and with bound copies of its parts. The copies
share one `Binding`, which holds what a call needs besides parameters: the key, whether it trains, changes of the state.
It exists only during the call, so `Layer.apply` is a pure function, and there is no global state.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, dataclass_transform

import phlox
import phlox.numpy as jnp
from phlox import Array
from phlox.errors import ArgumentError, ShapeError

from . import _checks, _code, _paths, _torch_layout
from ._binding import Binding, arguments_error, check_names, convert, path_key, short_code, watch_calls
from ._paths import BATCH, Path, Tree

#: metadata of a field whose layers are named by their position only, without the field's name
INLINE = "phlox_nn.inline"

_Self = TypeVar("_Self", bound="Layer")


@dataclasses.dataclass(frozen=True)
class _Plan:
    """The structure of a layer before it is bound: its own arrays, and the paths of its parts."""

    parameters: dict[str, Any]
    variables: dict[str, Any]
    #: (path below this layer, layer) of each part
    parts: tuple[tuple[Path, Layer], ...]
    #: attributes that hold parts: (name, path below this layer, value)
    holders: tuple[tuple[str, Path, Any], ...]


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field, dataclasses.Field))
class Layer:
    """The base class of layers. Subclasses are frozen dataclasses: annotated names are their configuration.

    Fields that are layers, or tuples, lists or dicts of layers, are the parts. A subclass defines its computation in
    ``__call__``, which runs on a bound copy: there, its own arrays are attributes, and its parts are functions. It may
    also define `parameters`, `variables` and `parts`.

    >>> import phlox
    >>> import phlox_nn as nn
    >>> class Residual(nn.Layer):
    ...     inner: nn.Layer
    ...     size: int
    ...
    ...     def parameters(self):
    ...         return {"scale": (nn.initializers.ones, (self.size,))}
    ...
    ...     def __call__(self, x):
    ...         return x + self.scale * self.inner(x)
    >>> model = Residual(nn.Linear(4, 4), 4)
    >>> params = model.init(phlox.random.key(0))
    >>> phlox.tree.map(phlox.numpy.shape, params)
    {'inner': {'bias': (4,), 'weight': (4, 4)}, 'scale': (4,)}
    >>> model.apply(params, phlox.numpy.ones((2, 4))).shape
    (2, 4)
    """

    def __init_subclass__(cls, *, init: bool = True, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = inspect.get_annotations(cls)
        conflicts = [name for name in own if hasattr(Layer, name)]
        if conflicts:
            raise ArgumentError(
                f"{cls.__name__}: the field {conflicts[0]!r} has the name of something that every layer has",
                instead="another name",
                field=conflicts[0],
            )
        # A class with its own __init__, such as Sequential, sets the fields there, and its subclasses without new
        # fields inherit it. (`init=False` informs type checkers.)
        generated = init and "__init__" not in cls.__dict__ and (bool(own) or cls.__init__ is object.__init__)
        dataclasses.dataclass(frozen=True, repr=False, eq=False, init=generated)(cls)
        if generated:
            # Its file is "<string>", at which errors of __post_init__ would point as the user's line.
            code = cls.__init__.__code__
            cls.__init__.__code__ = code.replace(co_filename=__file__)
        cls.__setattr__ = _refuse_assignment  # type: ignore[assignment, method-assign]
        if "__call__" in cls.__dict__:
            cls.__call__ = watch_calls(cls.__dict__["__call__"])  # type: ignore[method-assign]

    # --- methods for subclasses to override ---------------------------------------------------------------------

    def parameters(self) -> Mapping[str, Any]:
        """The layer's own parameters: name → (initializer, shape), or (initializer, shape, dtype) for a fixed dtype."""
        return {}

    def variables(self) -> Mapping[str, Any]:
        """The layer's own state, which is not trained, in the form of `parameters`. `BATCH` in a shape is a placeholder
        for the number of examples.
        """
        return {}

    def parts(self) -> Mapping[str, Any]:
        """Parts that are made from the configuration, besides those that are fields: name → layer, or several layers.

        >>> import phlox_nn as nn
        >>> class Pair(nn.Layer):
        ...     size: int
        ...
        ...     def parts(self):
        ...         return {"layers": [nn.Linear(self.size, self.size) for _ in range(2)]}
        ...
        ...     def __call__(self, x):
        ...         return self.layers[1](nn.relu(self.layers[0](x)))
        >>> import phlox
        >>> params = Pair(4).init(phlox.random.key(0))
        >>> phlox.tree.map(phlox.numpy.shape, params["layers"]["0"])
        {'bias': (4,), 'weight': (4, 4)}
        """
        return {}

    def torch_layout(self) -> Sequence[_torch_layout.Tensor]:
        """The names and layouts in PyTorch of the arrays of this layer and its parts, by default the same as here. For
        `phlox_nn.load_torch` and similar functions.
        """
        return _torch_layout.default(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The computation of the layer. Runs on a copy that is bound to parameters."""
        raise ArgumentError(
            f"{type(self).__name__} does not say what it computes", instead="def __call__(self, x): ..."
        )

    # --- from configuration to arrays ---------------------------------------------------------------------------

    def init(self, key: Any, *, dtype: Any = jnp.float32, reuse: Any = None) -> Tree:
        """Initial values of all parameters.

        The values of a parameter depend only on the key and its path, not on other parts of the model.

        Args:
          key: a PRNG key.
          dtype: of all parameters that do not fix theirs.
          reuse: parameters of a similar model: those that have a place here, by path and shape, are taken from it, also
            with their dtype. Used after `phlox_nn.replace`.

        Returns:
          Nested dicts, named by field; layers in tuples are named by their position, "0", "1", … Layers without
          parameters are omitted. ``phlox.eval_shape(model.init, key)`` returns shapes and dtypes without computing
          values.

        >>> import phlox
        >>> import phlox_nn as nn
        >>> phlox.tree.map(phlox.numpy.shape, nn.Sequential(nn.Linear(2, 3), nn.relu).init(phlox.random.key(0)))
        {'0': {'bias': (3,), 'weight': (2, 3)}}
        """
        _checks.key(self, "init", key)
        params = self._make("parameters", key, (), dtype, None)
        if reuse is None:
            return params
        old = dict(_paths.leaves(reuse))
        items = _paths.leaves(params)
        return _paths.nested(
            {path: old[path] if path in old and jnp.shape(old[path]) == jnp.shape(x) else x for path, x in items}
        )

    def init_state(self, *, batch: int = 1, dtype: Any = jnp.float32) -> Tree:
        """Initial values of all variables: state that is not trained, such as batch statistics and attention caches.

        Args:
          batch: the number of examples, for variables that are kept for each of them.
          dtype: of all variables that do not fix theirs.

        Returns:
          Nested dicts, named as those of `init`; an empty one when no layer has variables.

        >>> import phlox_nn as nn
        >>> nn.BatchNorm(2).init_state()
        {'mean': Array([0., 0.], dtype=float32), 'var': Array([1., 1.], dtype=float32)}
        """
        return self._make("variables", phlox.random.key(0), (), dtype, batch)

    def apply(
        self,
        params: Mapping[str, Any] | None,
        *args: Any,
        state: Mapping[str, Any] | None = None,
        key: Array | None = None,
        train: bool = False,
        dtype: Any = None,
        method: str = "__call__",
        **kwargs: Any,
    ) -> Any:
        """Computes with these parameters. A pure function, for `jit`, `grad`, `vmap`, `scan` and `pmap`.

        Args:
          params: as `init` makes them.
          args, kwargs: the arguments of the layer's ``__call__``, or of `method`.
          state: as `init_state` makes it; needed by layers that have variables.
          key: a PRNG key; needed by layers that draw random numbers.
          train: whether this is a step of training: `Dropout` drops, `BatchNorm` uses the batch.
          dtype: the compute dtype. Floating-point parameters and inputs are converted to it, statistics are kept in 32
            bits. By default dtypes are not converted.
          method: the name of the method to call.

        Returns:
          The outputs; with `state`, the pair of outputs and new state.

        Raises:
          TreeError, ShapeError: parameters or state are not those of this layer; by path.
          ArgumentError: the method does not take these arguments, or a layer needs `state` or `key`; by path.

        >>> import phlox
        >>> import phlox_nn as nn
        >>> model = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5))
        >>> params = model.init(phlox.random.key(0))
        >>> model.apply(params, phlox.numpy.ones((5, 2)), key=phlox.random.key(1), train=True).shape
        (5, 3)
        """
        bound = self.bind(params, state=state, key=key, train=train, dtype=dtype)
        function = getattr(bound, method, None)
        if not callable(function):
            raise ArgumentError(f"{type(self).__name__} has no method {method!r}", method=method)
        try:
            inspect.signature(function).bind(*args, **kwargs)
        except TypeError as error:
            raise arguments_error(bound, method, error) from None
        args, (kwargs,) = bound.cast(*args), bound.cast(kwargs)
        out = function(*args, **kwargs)
        return out if state is None else (out, bound.updated_state())

    def bind(
        self: _Self,
        params: Mapping[str, Any] | None,
        *,
        state: Mapping[str, Any] | None = None,
        key: Array | None = None,
        train: bool = False,
        dtype: Any = None,
    ) -> _Self:
        """A copy of this layer that can be called: its arrays are attributes, and its parts are bound too.

        For inspection, and for calls that `apply` does not support. Arguments as for `apply`.

        >>> import phlox
        >>> import phlox_nn as nn
        >>> model = nn.Sequential(nn.Linear(2, 3), nn.relu)
        >>> bound = model.bind(model.init(phlox.random.key(0)))
        >>> bound.layers[0].weight.shape, bound(phlox.numpy.ones((5, 2))).shape
        ((2, 3), (5, 3))
        """
        if key is not None:
            _checks.key(self, "apply", key)
        binding = Binding(key, train, dtype if dtype is None else jnp.dtype(dtype), state is not None)
        return self._bound({} if params is None else params, {} if state is None else state, binding, ())

    def with_parts(self: _Self, **parts: Any) -> _Self:
        """A copy of this layer with other layers in the place of some parts: fields, or those that `parts` makes.

        `phlox_nn.replace` does so for parts at any depth.

        Raises `ArgumentError` for a name that is no part.

        >>> import phlox_nn as nn
        >>> nn.MultiHeadAttention(8, 2).with_parts(out=nn.Identity())
        MultiHeadAttention(8, 2).with_parts(out=Identity())
        """
        fields = [field.name for field in dataclasses.fields(self)]  # type: ignore[arg-type]
        made = self.parts()
        for name in parts:
            if name not in fields and name not in made:
                raise ArgumentError(
                    f"{type(self).__name__} has no part {name!r}",
                    instead="one of " + ", ".join(dict.fromkeys(start for start, *_ in self._plan().holders)),
                    name=name,
                )
        copy = object.__new__(type(self))
        copy.__dict__.update({name: parts.get(name, getattr(self, name)) for name in fields})
        others = {name: part for name, part in parts.items() if name not in fields}
        copy.__dict__["_other_parts"] = {**self._other_parts, **others}
        return copy

    # --- for bound layers ---------------------------------------------------------------------------------------

    @property
    def train(self) -> bool:
        """Whether the running call is a step of training."""
        return self._bound_by.train

    @property
    def path(self) -> str:
        """The path of this bound layer in the model, such as ``blocks.0.attention``; empty for the model itself."""
        return _paths.text(self.__dict__.get("_path", ()))

    def random_key(self) -> Any:
        """A new PRNG key for this layer at each call.

        Raises `ArgumentError` if the call was not given a key.
        """
        binding = self._bound_by
        if binding.key is None:
            raise ArgumentError(
                f"{self._name()} draws random numbers and got no key", instead="apply(..., key=key)", layer=self.path
            )
        path = self._path
        drawn = binding.draws[path] = binding.draws.get(path, 0) + 1
        return path_key(binding.key, (*path, str(drawn)))

    def update(self, **variables: Any) -> None:
        """Changes variables of this layer; `apply` returns them as part of the new state.

        Raises `ArgumentError` if the call was not given a state, `ShapeError` if a shape changes.
        """
        binding = self._bound_by
        for name, new in variables.items():
            old = getattr(self, name)  # raises a helpful error if there is no such variable
            if jnp.shape(new) != jnp.shape(old):
                raise ShapeError(
                    f"{self._name()}: the variable {name!r} has shape {jnp.shape(old)} and cannot become "
                    f"{jnp.shape(new)}",
                    shapes=[jnp.shape(old), jnp.shape(new)],
                )
            new = jnp.asarray(new, jnp.result_type(old))
            binding.changes[(*self._path, name)] = new
            self.__dict__[name] = new

    def updated_state(self) -> Tree:
        """The state that this bound model was given, with the changes of its calls."""
        items = dict(_paths.leaves(self.__dict__["_state"]))
        here: Path = self._path
        changes = self._bound_by.changes.items()
        items.update({path[len(here) :]: value for path, value in changes if path[: len(here)] == here})
        return _paths.nested(items)

    def cast(self, *values: Any) -> tuple[Any, ...]:
        """`values` (pytrees) with floating-point arrays converted to the compute dtype of the call, if there is one."""
        dtype = self._bound_by.dtype
        return values if dtype is None else phlox.tree.map(lambda x: convert(x, dtype), values)

    def bound_layers(self) -> Iterator[Layer]:
        """This bound layer and all bound layers in it."""
        yield self
        parts: list[Layer] = []
        for name, path, _ in self._plan().holders:
            _replaced(self.__dict__[name], path, lambda _, part: parts.append(part))
        for part in parts:
            if "_binding" in part.__dict__:
                yield from part.bound_layers()

    def with_arrays(self: _Self, **arrays: Any) -> _Self:
        """A copy of this bound layer with some of its own arrays replaced."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, **arrays)
        return copy

    # --- implementation -----------------------------------------------------------------------------------------

    @property
    def _copies(self) -> tuple[int, ...]:
        """The leading axes that this layer adds to the arrays of its parts, as `Stack` adds one for its blocks."""
        return ()

    @property
    def _other_parts(self) -> dict[str, Any]:
        """The parts that `with_parts` has put in the place of those that `parts` makes."""
        others: dict[str, Any] = self.__dict__.get("_other_parts", {})
        return others

    def _plan(self) -> _Plan:
        # Not a cached_property: an AttributeError raised inside would call __getattr__, as if it did not exist.
        plan: _Plan | None = self.__dict__.get("_planned")
        if plan is None:
            self.__dict__["_planned"] = None  # while it is computed, __getattr__ must not ask for the plan again
            plan = self.__dict__["_planned"] = self._make_plan()
        return plan

    def _make_plan(self) -> _Plan:
        parameters, variables, named = (
            dict(self.parameters()),
            dict(self.variables()),
            {**self.parts(), **self._other_parts},
        )
        parts: list[tuple[Path, Layer]] = []
        holders = []
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        held = [(f.name, () if f.metadata.get(INLINE) else (f.name,), getattr(self, f.name)) for f in fields]
        for name, path, value in (*held, *((name, (name,), value) for name, value in named.items())):
            before = len(parts)
            _replaced(value, path, lambda *part: parts.append(part))
            if len(parts) > before:
                holders.append((name, path, value))
        names = [*(f.name for f in fields), *named, *parameters, *variables]
        for name in (*named, *parameters, *variables):
            if names.count(name) > 1 or hasattr(type(self), name) or "." in name:
                raise ArgumentError(
                    f"{type(self).__name__}: {name!r} cannot be the name of an array or a part, as something else is "
                    "called so",
                    instead="another name, without dots",
                    name=name,
                )
        return _Plan(parameters, variables, tuple(parts), tuple(holders))

    def _make(self, kind: str, key: Any, path: Path, dtype: Any, batch: int | None) -> Tree:
        """Initial values of the arrays of one kind, 'parameters' or 'variables'."""
        plan = self._plan()
        arrays: Tree = {}
        for name, (initializer, shape, *fixed) in getattr(plan, kind).items():
            full = tuple(batch if n == BATCH and batch is not None else n for n in shape)
            arrays[name] = initializer(path_key(key, (*path, name)), full, *(fixed or [dtype]))
        for below, part in plan.parts:
            inside = self._make_part(part, below, kind, key, path, dtype, batch)
            if inside:
                _paths.put(arrays, below, inside)
        return arrays

    def _make_part(self, part: Layer, below: Path, kind: str, key: Any, path: Path, dtype: Any, batch: Any) -> Tree:
        """Initial values of the arrays of a part."""
        return part._make(kind, key, (*path, *below), dtype, batch)

    def _bound(self: _Self, params: Any, state: Any, binding: Binding, path: Path) -> _Self:
        """The bound copy of this layer, with these arrays."""
        plan = self._plan()
        bound = self._unfilled(params, state, binding, path)
        for name, (_, shape, *_dtype) in plan.parameters.items():
            array = params[name]
            if jnp.shape(array) != tuple(shape):
                raise ShapeError(
                    f"the parameter {_paths.text((*path, name))!r} has shape {jnp.shape(array)}, but "
                    f"{_code.of_fields(self)} needs {tuple(shape)}",
                    shapes=[jnp.shape(array), tuple(shape)],
                    path=(*path, name),
                )
            bound.__dict__[name] = array if binding.dtype is None else convert(array, binding.dtype)
        if binding.stateful:
            bound.__dict__.update({name: state[name] for name in plan.variables})
        by_path = {below: self._bind_part(part, below, params, state, binding, path) for below, part in plan.parts}
        for name, start, value in plan.holders:
            bound.__dict__[name] = _replaced(value, start, lambda place, _: by_path[place])
        return bound if binding.adapt is None else binding.adapt(path, bound)

    def _bind_part(self, part: Layer, below: Path, params: Any, state: Any, binding: Binding, path: Path) -> Any:
        """The bound copy of a part, with its share of the arrays of this layer."""
        return part._bound(_paths.get(params, below), _paths.get(state, below), binding, (*path, *below))

    def _unfilled(self: _Self, params: Any, state: Any, binding: Binding, path: Path) -> _Self:
        """A copy of this layer without arrays. Raises unless the names of parameters and variables are right."""
        check_names(self, params, path, "parameters")
        if binding.stateful:
            check_names(self, state, path, "variables")
        bound = object.__new__(type(self))
        bound.__dict__.update(self.__dict__, _binding=binding, _path=path, _state=state)
        return bound

    @property
    def _bound_by(self) -> Binding:
        binding: Binding | None = self.__dict__.get("_binding")
        if binding is None:
            raise _unbound(self)
        return binding

    def _name(self) -> str:
        """The bound layer in error messages: path and code."""
        return f"{self.path} ({short_code(self)})" if self.path else short_code(self)

    def __getattr__(self, name: str) -> Any:
        # Called only for missing attributes: raises a helpful error for arrays of a layer that is not bound.
        if not name.startswith("_") and self.__dict__.get("_planned", self) is not None:
            plan = self._plan()
            if name in plan.variables and "_binding" in self.__dict__:
                raise ArgumentError(
                    f"{self._name()} has state and was given none",
                    instead="model.apply(params, x, state=state), with state = model.init_state()",
                    layer=self.path,
                )
            if name in plan.parameters or name in plan.variables:
                _ = self._bound_by  # raises, because the layer is not bound
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __repr__(self) -> str:
        others = [f"{name}={_code.value(part)}" for name, part in self._other_parts.items()]
        return _code.of_fields(self) + (_code.call(".with_parts", others) if others else "")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._compared() == other._compared()

    def __hash__(self) -> int:
        values, others = self._compared()
        return hash((type(self), values, repr(others)))

    def _compared(self) -> tuple[Any, ...]:
        values = tuple(getattr(self, f.name) for f in dataclasses.fields(self) if f.compare)  # type: ignore[arg-type]
        return values, self._other_parts

    def __getstate__(self) -> dict[str, Any]:
        # Defaults are not pickled, because initializers are closures, which pickle does not support.
        others = {"_other_parts": self._other_parts} if self._other_parts else {}
        return {**dict(_code.non_default_fields(self)), **others}

    def __setstate__(self, fields: dict[str, Any]) -> None:
        defaults = {f.name: f.default for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        self.__dict__.update(defaults, **fields)


def _replaced(value: Any, path: Path, replace: Callable[[Path, Layer], Any]) -> Any:
    """`value` with each layer in it replaced by ``replace(path, layer)``."""
    if isinstance(value, Layer):
        return replace(path, value)
    if type(value) in (tuple, list):
        return type(value)(_replaced(item, (*path, str(n)), replace) for n, item in enumerate(value))
    if type(value) is dict:
        return {name: _replaced(item, (*path, str(name)), replace) for name, item in value.items()}
    return value


class FrozenLayerError(ArgumentError, dataclasses.FrozenInstanceError):
    """An attribute of a layer was assigned. A layer is configuration; its fields are declared in the class."""


def _refuse_assignment(layer: Layer, name: str, value: Any) -> None:
    """Raises the error for ``self.name = value``, as `Layer.__setattr__`."""
    kind = type(layer).__name__
    if "_binding" not in layer.__dict__:
        function, declared = "__init__", f"{name}: {'nn.Layer' if _holds_layer(value) else type(value).__name__}"
        instead = f"class {kind}(nn.Layer):  {declared}  # a field, without __init__; then {kind}({name}=...)"
        if _holds_layer(value):
            instead += f', or def parts(self): return {{"{name}": ...}}'
    else:
        function = "__call__"
        instead = f'def parts(self): return {{"{name}": ...}}, or a field "{name}: nn.Layer"'
        if not _holds_layer(value):
            instead = f"a local variable; for state, def variables(self): ..., and self.update({name}=...)"
    raise FrozenLayerError(
        f"{kind}: {function} assigns self.{name}, but a layer is configuration that does not change: its parts, arrays "
        "and options are declared in the class",
        instead=instead,
        field=name,
    )


def _holds_layer(value: Any) -> bool:
    if isinstance(value, tuple | list | dict):
        return any(_holds_layer(item) for item in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, Layer)


def _unbound(layer: Layer) -> ArgumentError:
    """The error for the call of a layer without arrays; inside of another layer's call it says how to declare it."""
    frame = inspect.currentframe()
    while frame is not None:
        caller = frame.f_locals.get("self")
        if isinstance(caller, Layer) and caller is not layer and "_binding" in caller.__dict__:
            kind = type(caller).__name__
            names = [name for name, value in vars(type(caller)).items() if value is layer]
            what = f"its attribute {names[0]!r} has no annotation" if names else "it is not one of its parts"
            name = names[0] if names else type(layer).__name__.lower()
            return ArgumentError(
                f"{kind} calls {short_code(layer)}, which has no parameters: {what}",
                instead=f'a field of the class {kind}, "{name}: nn.Layer", or '
                f'def parts(self): return {{"{name}": {short_code(layer)}}}; then self.{name}(x)',
                layer=caller.path,
            )
        frame = frame.f_back
    return ArgumentError(
        f"{type(layer).__name__} is configuration and has no arrays before it is bound to parameters",
        instead="model.apply(params, x), with params = model.init(key)",
    )
