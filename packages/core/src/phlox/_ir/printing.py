"""Printing of Jaxprs, in the form that JAX prints them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from .._base.source import scope_text
from .jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, jaxprs_in
from .pretty import Break, Doc, Group, Nest, join, render

_MANY_EQUATIONS = 10  # inner Jaxprs with more equations are printed once, above the main one


def jaxpr_text(jaxpr: Jaxpr, *, source_info: bool = False, print_shapes: bool = True, name_stack: bool = False) -> str:
    """A whole Jaxpr as text."""
    return render(_Printer(source_info, print_shapes, name_stack).program(jaxpr))


def eqn_text(eqn: JaxprEqn) -> str:
    """One equation as text, with its variables named from ``a``."""
    return render(_Printer(False, True).eqn(eqn))


def shown_with(**fixed: Any) -> Callable[[JaxprEqn, Any], dict[str, Any]]:
    """A rule `show` of primitives: the parameters, and those that JAX prints and phlox's primitive has not."""
    return lambda eqn, printer: dict(sorted({**fixed, **eqn.params}.items()))


def atom_name(index: int) -> str:
    """The name of the variable number `index` in print: a … z, ba, bb …"""
    name = ""
    while not name or index:
        index, digit = divmod(index, 26)
        name = chr(ord("a") + digit) + name
    return name


class _Printer:
    """Builds documents (see `pretty`); names variables and shared inner Jaxprs in the order in which they appear."""

    def __init__(self, source_info: bool, print_shapes: bool, name_stack: bool = False):
        self.source_info = source_info
        self.print_shapes = print_shapes
        self.name_stack = name_stack
        self.names: dict[Var, str] = {}
        self.used = 0
        self.shared: dict[Jaxpr, str] = {}

    # -- names

    def name(self, v: Atom) -> str:
        if isinstance(v, Literal):
            return repr(v)
        name = self.names.get(v)
        if name is None:
            name = self.fresh()
            self.names[v] = name
        return name

    def fresh(self) -> str:
        shared_names = set(self.shared.values())
        while True:
            name = atom_name(self.used)
            self.used += 1
            if name not in shared_names:
                return name

    def name_alike(self, jaxpr: Jaxpr, eqn: JaxprEqn) -> None:
        """Gives inputs and outputs of `jaxpr`, which `eqn` calls, the names of the operands and results of `eqn`."""
        if jaxpr not in self.shared:
            self._same_names(jaxpr.invars, eqn.invars)
            self._same_names(jaxpr.outvars, eqn.outvars)

    def _same_names(self, inner: Sequence[Atom], outer: Sequence[Atom]) -> None:
        seen: set[Var] = set()
        if len(inner) != len(outer):
            return
        for mine, theirs in zip(inner, outer, strict=True):
            if type(mine) is Var and type(theirs) is Var and mine not in self.names and theirs not in seen:
                seen.add(theirs)
                self.names[mine] = self.name(theirs)

    # -- documents

    def program(self, top: Jaxpr) -> Doc:
        counts: Counter[Jaxpr] = Counter()
        titles: dict[Jaxpr, str] = {}
        queue = [top]
        for jaxpr in queue:  # the list grows while it is read: breadth first
            counts[jaxpr] += 1
            # Counted twice, so that it is printed above the main one even if it occurs once.
            if jaxpr is not top and len(jaxpr.eqns) > _MANY_EQUATIONS:
                counts[jaxpr] += 1
            for eqn in jaxpr.eqns:
                # Each occurrence counts: a Jaxpr that occurs twice is printed once, above the main one.
                for inner in jaxprs_in(eqn.params):
                    queue.append(inner)
                    if "name" in eqn.params:
                        titles.setdefault(inner, eqn.params["name"].strip("<>"))
            self.names.update(dict.fromkeys(_unread(jaxpr), "_"))
        uses: Counter[str] = Counter()
        for jaxpr, count in counts.items():
            if count > 1:
                title = titles.get(jaxpr, "jaxpr")
                self.shared[jaxpr] = f"{title}{uses[title]}" if uses[title] else title
                uses[title] += 1
        documents: list[Doc] = []
        for jaxpr, title in self.shared.items():
            documents += [f"let {title} = ", self.skeleton(jaxpr), " in", Break()]
        return [*documents, self.skeleton(top)]

    def jaxpr(self, jaxpr: Jaxpr) -> Doc:
        return self.shared.get(jaxpr) or self.skeleton(jaxpr)

    def skeleton(self, jaxpr: Jaxpr) -> Doc:
        constvars = self.vars(jaxpr.constvars, shapes=self.print_shapes)
        invars = self.vars(jaxpr.invars, shapes=self.print_shapes)
        eqns = join(Break("; "), [self.eqn(eqn) for eqn in jaxpr.eqns])
        outvars = ["(", self.vars(jaxpr.outvars, separator=","), ")" if len(jaxpr.outvars) != 1 else ",)"]
        body: list[Doc] = ["{ lambda ", constvars, "; ", invars, ". let"]
        body += [Nest(2, [Break(), eqns]), Break(), "in ", outvars]
        return Group([Nest(2, body), " }"])

    def vars(self, vs: Sequence[Atom], *, shapes: bool = False, separator: str = "") -> Doc:
        names = [self.name(v) + (f":{v.aval.short}" if shapes else "") for v in vs]
        return Nest(2, Group(join([separator, Group(Break())], names)))

    def eqn(self, eqn: JaxprEqn) -> Doc:
        show = eqn.primitive.show
        params = show(eqn, self) if show is not None else dict(sorted(eqn.params.items()))
        left = self.vars(eqn.outvars, shapes=self.print_shapes)
        where = ""
        if eqn.source_info is not None:
            where = f"  # {eqn.source_info}" if self.source_info else ""
            if self.name_stack and eqn.source_info.scope:
                where = f" # [{scope_text(eqn.source_info.scope)}]" + where
        right = [eqn.primitive.name, self.params(params), " ", self.vars(eqn.invars), where]
        return [left, " = ", *right] if eqn.outvars else right

    def params(self, params: dict[str, Any]) -> Doc:
        if not params:
            return ""
        pairs = join(Break(), [[f"{key}=", self.value(value)] for key, value in params.items()])
        return Group([Nest(2, ["[", Break(""), pairs]), Break(""), "]"])

    def value(self, value: Any) -> Doc:
        if type(value) is ClosedJaxpr:
            return self.jaxpr(value.jaxpr)
        if type(value) is Jaxpr:
            return self.jaxpr(value)
        if type(value) is tuple and value and all(type(item) in (Jaxpr, ClosedJaxpr) for item in value):
            inner = join(Break(), [self.value(item) for item in value])
            return Group([Nest(2, ["(", Break(""), inner]), Break(""), ")"])
        # Sorted, because the order of a set of strings differs from process to process.
        if isinstance(value, frozenset):
            return f"frozenset({{{', '.join(map(repr, sorted(value)))}}})"
        # Addresses of functions differ from run to run, and equal programs should print alike.
        return re.sub(r" at 0x([0-9a-fA-F]+)", lambda m: " at 0x" + "X" * len(m[1]), str(value))


def _unread(jaxpr: Jaxpr) -> set[Var]:
    """Variables that an equation binds and that neither an equation nor the outputs read; they are printed as ``_``."""
    bound = {v for eqn in jaxpr.eqns for v in eqn.outvars}
    for eqn in jaxpr.eqns:
        bound.difference_update(v for v in eqn.invars if type(v) is Var)
    return bound.difference(v for v in jaxpr.outvars if type(v) is Var)
