"""Values from outside that a function reads: globals, closure cells, attributes of ``self`` and of static arguments.

Bytecode tells which names a function loads, and which attributes and constant keys follow. Each such path is walked
from the function to the object, without running a property. Functions of the user that are called by name are read too.
Paths hold names only, so that what stores them keeps no object of the user alive.
"""

from __future__ import annotations

import functools
import opcode
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CellType, CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from ..._base.interning import clear_if_full
from ..._base.source import Location, is_users

#: one step of a path: ("global", name), ("cell", name), ("attr", name), ("item", key), ("static", position or name),
#: ("self", ""), ("function", ""), ("argument", position or name), ("default", name of the parameter),
#: ("getter", name of a property), the function of the property
Step = tuple[str, Any]
Path = tuple[Step, ...]
#: methods that change a list, dict, set or deque
MUTATORS = frozenset(
    [
        "add",
        "append",
        "appendleft",
        "extend",
        "extendleft",
        "insert",
        "put",
        "setdefault",
        "update",
        "__setitem__",
        "difference_update",
        "intersection_update",
        "symmetric_difference_update",
    ]
)
#: how deep functions are followed, and how many of them
_DEPTH, _FUNCTIONS = 4, 64
#: among so many loads before a store is the one of an augmented assignment
_AUGMENTED = 8
MISSING: Any = object()
#: classes of default values that can change in place
_MUTABLE = (list, dict, set, deque, np.ndarray)
# The class has no public name.
#: the class of functions decorated with `functools.lru_cache` or `functools.cache`
CACHED = type(functools.lru_cache(lambda: None))


class Chain(NamedTuple):
    """Loads in a code object: a name, then attributes and constant keys.

    `kind` is "global", "cell" or "local". `writes` tells whether the instruction after them stores into the last part,
    or calls a method that changes it.
    """

    kind: str
    name: str
    steps: Path
    offset: int
    writes: bool


class Read(NamedTuple):
    """A path from a function to a value that its code loads.

    Attributes:
      path: the steps from the function.
      text: the expression in the user's code, as ``self.rate``.
      code, offset: the instruction, for its line.
      writes: whether the code stores into the value, or calls a method that changes it.
    """

    path: Path
    text: str
    code: CodeType
    offset: int
    writes: bool

    @property
    def location(self) -> Location:
        """The line of the instruction."""
        return Location(self.code, self.offset, ())


# -- bytecode

_NAMES = {name: number for number, name in enumerate(opcode.opname)}
# Instructions without effect on which name is loaded. Their set depends on Python's version; missing ones count as -1.
_SKIPPED = {_NAMES.get(name, -1) for name in ("CACHE", "PRECALL", "PUSH_NULL", "RESUME", "NOP", "COPY", "SWAP")}
_LOAD, _STORE = _NAMES["LOAD_FAST"], _NAMES["STORE_FAST"]
# Python 3.13 joins two instructions on local variables in one, with an argument of four bits for each. Python 3.14 has
# forms of the loads that borrow the reference.
_PAIRS = {
    _NAMES.get("LOAD_FAST_LOAD_FAST", -1): (_LOAD, _LOAD),
    _NAMES.get("LOAD_FAST_BORROW_LOAD_FAST_BORROW", -1): (_LOAD, _LOAD),
    _NAMES.get("STORE_FAST_LOAD_FAST", -1): (_STORE, _LOAD),
}
_LOCALS = {_NAMES.get(f"LOAD_FAST{form}", -1) for form in ("", "_BORROW", "_CHECK", "_AND_CLEAR")}
_CELLS = {_NAMES.get(name, -1) for name in ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")}
_GLOBALS = {_NAMES.get(name, -1) for name in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")}
_ATTRIBUTES = {_NAMES.get(name, -1) for name in ("LOAD_ATTR", "LOAD_METHOD")}
_STORE_ATTR, _STORE_ITEM, _EXTENDED = (_NAMES[name] for name in ("STORE_ATTR", "STORE_SUBSCR", "EXTENDED_ARG"))
# Python 3.14 puts small integers into the argument of their load, and 3.15 has a table of frequent constants.
_CONSTANT, _SMALL_INTEGER = _NAMES["LOAD_CONST"], _NAMES.get("LOAD_SMALL_INT", -1)
_CONSTANTS = {_CONSTANT, _SMALL_INTEGER, _NAMES.get("LOAD_COMMON_CONSTANT", -1)}
# Since Python 3.14 an item is one of the binary operations, that with number 26 (NB_SUBSCR in CPython's opcode.h).
_ITEM = (_NAMES["BINARY_SUBSCR"], 0) if "BINARY_SUBSCR" in _NAMES else (_NAMES["BINARY_OP"], 26)
# The argument of these has a flag in its lowest bit: LOAD_GLOBAL since Python 3.11, LOAD_ATTR since 3.12.
_GLOBAL, _SHIFTED_ATTR = _NAMES["LOAD_GLOBAL"], _NAMES["LOAD_ATTR"] if sys.version_info >= (3, 12) else -1
_STORES = {_NAMES["STORE_GLOBAL"]: "global", _NAMES["STORE_DEREF"]: "cell"}
_chains: dict[int, tuple[CodeType, list[Chain]]] = {}


def chains_of(code: CodeType) -> list[Chain]:
    """The loads in a code object; cached, as the same functions are traced again and again."""
    cached = _chains.get(id(code))
    if cached is None:
        # The code object is stored so that its id stays its own.
        cached = clear_if_full(_chains)[id(code)] = code, list(_scan(code))
    return cached[1]


def _instructions(code: CodeType) -> Iterator[tuple[int, int, int]]:
    """The position, operation and argument of each instruction that has an effect on which name is loaded."""
    extended = 0
    raw = code.co_code
    # Instructions have two bytes: the number of the operation, and its argument.
    for offset in range(0, len(raw), 2):
        op, arg = raw[offset], raw[offset + 1] | extended
        # An argument above 255 is preceded by its higher bytes.
        extended = arg << 8 if op == _EXTENDED else 0
        if op in _PAIRS:
            first, second = _PAIRS[op]
            yield offset, first, arg >> 4
            yield offset, second, arg & 15
        elif op not in _SKIPPED and op != _EXTENDED:
            yield offset, op, arg


def _scan(code: CodeType) -> Iterator[Chain]:
    # Locals and cells are numbered together since Python 3.11.
    names, fast = code.co_names, (*code.co_varnames, *_cells(code))
    chain: Chain | None = None
    earlier: list[Chain] = []
    key = MISSING
    for offset, op, arg in _instructions(code):
        if chain is not None and op in _CONSTANTS:
            key = _constant(code, op, arg)
            continue
        if chain is not None and op in _ATTRIBUTES and key is MISSING:
            name = names[arg >> 1 if op == _SHIFTED_ATTR else arg]
            if name in MUTATORS:
                # Methods such as `append` change the object, whatever their result is.
                yield chain._replace(writes=True)
                chain = None
            else:
                chain = chain._replace(steps=(*chain.steps, ("attr", name)))
            continue
        if chain is not None and (op, arg) == _ITEM and isinstance(key, str | int):
            chain = chain._replace(steps=(*chain.steps, ("item", key)))
            key = MISSING
            continue
        if chain is not None:
            if op == _STORE_ATTR:
                chain = chain._replace(steps=(*chain.steps, ("attr", names[arg])))
            yield chain._replace(writes=op in (_STORE_ATTR, _STORE_ITEM))
            earlier.append(chain)
            chain = None
        elif op in (_STORE_ATTR, _STORE_ITEM):  # that of `self.count += 1`, whose chain ended at the operator
            for load in earlier[-_AUGMENTED:]:
                end = load.steps[-1] if load.steps else ("", "")
                # ``self.count += 1`` loads the same attribute before it stores it.
                if end == ("attr", names[arg]) if op == _STORE_ATTR else end[0] == "item":
                    yield load._replace(writes=True)
                if op == _STORE_ITEM and end[0] == "item":  # the container is written, too
                    yield load._replace(steps=load.steps[:-1], writes=True)
        key = MISSING
        if op in _GLOBALS:
            chain = Chain("global", names[arg >> 1 if op == _GLOBAL else arg], (), offset, False)
        elif op in _CELLS:
            chain = Chain("cell", fast[arg], (), offset, False)
        elif op in _LOCALS and arg < len(fast):
            chain = Chain("local", fast[arg], (), offset, False)
        elif op in _STORES:
            yield Chain(_STORES[op], names[arg] if op == _NAMES["STORE_GLOBAL"] else fast[arg], (), offset, True)


def _constant(code: CodeType, op: int, arg: int) -> Any:
    """The constant that the instruction `op` of `code` loads."""
    if op == _CONSTANT:
        return code.co_consts[arg]
    return arg if op == _SMALL_INTEGER else vars(opcode)["_common_constants"][arg]


def _cells(code: CodeType) -> tuple[str, ...]:
    """The names of cells as instructions number them: those that are parameters count among the local variables."""
    # Since Python 3.11 a cell that is a parameter has the number of the parameter.
    return (*(name for name in code.co_cellvars if name not in code.co_varnames), *code.co_freevars)


# -- walking


def take(x: Any, step: Step, statics: Mapping[Any, Any]) -> Any:
    """The object one step further; `MISSING` if there is none. `statics` has the static arguments of the call."""
    kind, name = step
    if kind == "attr":
        return attribute(x, name)
    if kind == "item":
        return _item(x, name)
    if kind == "global":
        return x.__globals__.get(name, MISSING) if isinstance(x, FunctionType) else MISSING
    if kind == "cell":
        return _cell(x, name)
    if kind == "self":
        return x.__self__ if isinstance(x, MethodType) else MISSING
    if kind == "argument":
        return _argument(x, name)
    if kind == "getter":
        return _getter(x, name)
    if kind == "static":
        return statics.get(name, MISSING)
    if kind == "default":
        return defaults(x).get(name, MISSING) if isinstance(x, FunctionType) else MISSING
    return inner_function(x)


def walk(fun: Any, path: Path, statics: Mapping[Any, Any]) -> Any:
    """The object at the end of a path; `MISSING` if a step leads nowhere."""
    x = fun
    for step in path:
        x = take(x, step, statics)
        if x is MISSING:
            return MISSING
    return x


def attribute(x: Any, name: str) -> Any:
    """The attribute of an object, if it is stored in the object or its class: no property is run."""
    try:
        values = object.__getattribute__(x, "__dict__")
    except AttributeError:
        values = {}
    if name in values:
        return values[name]
    if isinstance(x, ModuleType):
        return MISSING
    for parent in x.__mro__ if isinstance(x, type) else type(x).__mro__:
        value = vars(parent).get(name, MISSING)
        if value is MISSING:
            continue
        # Slots and fields of named tuples store their value, though they are descriptors.
        if isinstance(value, MemberDescriptorType) or type(value).__name__ == "_tuplegetter":
            return getattr(x, name, MISSING)
        if isinstance(value, FunctionType) and not isinstance(x, type):
            return MethodType(value, x)
        if isinstance(value, staticmethod | classmethod):
            return getattr(x, name)
        if isinstance(value, CACHED):
            return value
        # Other descriptors are properties, which would run code of the user.
        return MISSING if hasattr(type(value), "__get__") and not isinstance(value, FunctionType) else value
    return MISSING


def _getter(x: Any, name: str) -> Any:
    """The function of the property `name` of an object; `MISSING` if it is none."""
    member = next((vars(kind)[name] for kind in type(x).__mro__ if name in vars(kind)), None)
    return member.fget if type(member) is property else MISSING


def _item(x: Any, key: Any) -> Any:
    # Not `x[key]`: a `defaultdict` would add an item, and methods of the user's subclasses are not called.
    if isinstance(x, dict):
        return dict.get(x, key, MISSING)
    kind = list if isinstance(x, list) else tuple
    try:
        return kind.__getitem__(x, key)
    # An index outside; a key that is no index; or no list or tuple.
    except (LookupError, TypeError):
        return MISSING


def _cell(x: Any, name: str) -> Any:
    if not isinstance(x, FunctionType) or name not in x.__code__.co_freevars or x.__closure__ is None:
        return MISSING
    # `cell_contents` of a variable that has no value raises ValueError.
    cell: CellType = x.__closure__[x.__code__.co_freevars.index(name)]
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def _argument(x: Any, name: Any) -> Any:
    if not isinstance(x, functools.partial):
        return MISSING
    if isinstance(name, str):
        return x.keywords.get(name, MISSING)
    return x.args[name] if name < len(x.args) else MISSING


def defaults(f: FunctionType) -> dict[str, Any]:
    """The default values of a function by the names of its parameters."""
    names = f.__code__.co_varnames[: f.__code__.co_argcount]
    values = f.__defaults__ or ()
    return {**dict(zip(names[len(names) - len(values) :], values, strict=True)), **(f.__kwdefaults__ or {})}


def functions_in(fun: Any) -> Iterator[Any]:
    """`fun`, and the functions that it wraps, see `inner_function`."""
    while fun is not MISSING:
        yield fun
        fun = inner_function(fun)


def inner_function(x: Any) -> Any:
    """The function in a method, a partial, a weak reference, a jitted function, or a wrapper with ``__wrapped__``."""
    if isinstance(x, weakref.ref):  # as of the bodies of `fori_loop`
        return x()
    if isinstance(x, MethodType):
        return x.__func__
    if isinstance(x, functools.partial):
        return x.func
    return getattr(x, "__wrapped__", MISSING)


# -- functions


class Reader:
    """Collects the reads of a function and of the functions that it calls by name.

    `reads` has the values, `functions` the functions that are read.
    """

    def __init__(self, fun: Callable[..., Any], statics: Sequence[Any] = ()):
        self.statics = {parameter: value for parameter, _, value in statics}
        self.reads: list[Read] = []
        self.functions: list[Read] = []
        self._seen: set[Any] = set()
        self._function(fun, (), {}, 0)

    def _function(self, x: Any, path: Path, bound: Mapping[Any, tuple[Path, Any]], depth: int) -> None:
        """Reads of a callable. `bound` has the path and value of arguments that are known, by position or name."""
        if depth > _DEPTH:
            return
        # At the start, static arguments are known by their position.
        bound = dict(bound) if path else {w: ((("static", w),), v) for w, v in self.statics.items()}
        # Goes through methods, partials and wrappers to a function of the user's, and records the steps.
        while not isinstance(x, FunctionType) or not is_users(x.__code__.co_filename):
            if isinstance(x, MethodType):
                # A method passes its object as the first argument.
                shifted = {w + 1 if isinstance(w, int) else w: v for w, v in bound.items()}
                bound = {**shifted, 0: ((*path, ("self", "")), x.__self__)}
            elif isinstance(x, functools.partial):
                # Arguments of a partial come before those of the call.
                shifted = {w + len(x.args) if isinstance(w, int) else w: v for w, v in bound.items()}
                items = [*enumerate(x.args), *x.keywords.items()]
                bound = {**shifted, **{w: ((*path, ("argument", w)), v) for w, v in items}}
            inner = inner_function(x)
            if inner is MISSING and not isinstance(x, FunctionType):
                x, path = attribute(x, "__call__"), (*path, ("attr", "__call__"))
                if isinstance(x, MethodType):
                    continue
                return
            if inner is MISSING:
                self._closure(x, path, depth)
                return
            x, path = inner, (*path, ("function", ""))
        # The same function with other known arguments reads other values.
        mark = (id(x), *(id(v) for _, v in bound.values()))
        if mark in self._seen or len(self._seen) >= _FUNCTIONS:
            return
        self._seen.add(mark)
        names = x.__code__.co_varnames[: x.__code__.co_argcount]
        known = {
            names[w] if isinstance(w, int) else w: v for w, v in bound.items() if w in range(len(names)) or w in names
        }
        # A default list or dict is shared by all calls, and so is a value from outside.
        mutable = {k: v for k, v in defaults(x).items() if isinstance(v, _MUTABLE)}
        unbound = {name: ((*path, ("default", name)), value) for name, value in mutable.items()}
        self._code(x, x.__code__, path, {**unbound, **known}, depth)

    def _closure(self, x: FunctionType, path: Path, depth: int) -> None:
        """Reads of the functions that a function of a library calls by its closure, as those of loops do."""
        for name in x.__code__.co_freevars:
            value = _cell(x, name)
            if isinstance(value, FunctionType | MethodType | functools.partial | weakref.ref):
                self._function(value, (*path, ("cell", name)), {}, depth + 1)

    def _code(
        self, f: FunctionType, code: CodeType, path: Path, local: dict[str, tuple[Path, Any]], depth: int
    ) -> None:
        for chain in chains_of(code):
            if chain.kind == "global":
                start = (*path, ("global", chain.name)), f.__globals__.get(chain.name, MISSING)
            elif chain.name in local:
                start = local[chain.name]
            elif chain.kind == "cell":
                start = (*path, ("cell", chain.name)), _cell(f, chain.name)
            else:
                continue
            if start[1] is not MISSING:
                self._chain(code, chain, *start, depth)
        # Inner functions, lambdas and comprehensions are constants of the code object.
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                # Parameters of an inner function hide locals of the outer one.
                hidden = inner.co_varnames[: inner.co_argcount + inner.co_kwonlyargcount]
                self._code(f, inner, path, {k: v for k, v in local.items() if k not in hidden}, depth)

    def _chain(self, code: CodeType, chain: Chain, path: Path, x: Any, depth: int) -> None:
        text = chain.name
        for i in range(len(chain.steps) + 1):
            last = i == len(chain.steps)
            # Modules of libraries hold what does not change.
            if isinstance(x, ModuleType):
                if not is_users(getattr(x, "__file__", None) or ""):
                    return
            elif isinstance(x, FunctionType | MethodType | functools.partial):
                self.functions.append(Read(path, text, code, chain.offset, False))
                self._function(x, path, {}, depth + 1)
            elif isinstance(x, CACHED):
                self.reads.append(Read(path, text, code, chain.offset, False))
                self._function(x, path, {}, depth + 1)
            else:
                self.reads.append(Read(path, text, code, chain.offset, last and chain.writes))
                # The object is called, and its method reads further values.
                if last and callable(x) and (call := attribute(x, "__call__")) is not MISSING:
                    self._function(call, (*path, ("attr", "__call__")), {}, depth + 1)
            if last:
                return
            step = chain.steps[i]
            owner, x = x, take(x, step, self.statics)
            if x is MISSING:
                # The value of a property is not known, but what its function reads is.
                if step[0] == "attr" and (getter := _getter(owner, step[1])) is not MISSING:
                    self._function(getter, (*path, ("getter", step[1])), {0: (path, owner)}, depth + 1)
                return
            path = (*path, step)
            text += f".{step[1]}" if step[0] == "attr" else f"[{step[1]!r}]"
