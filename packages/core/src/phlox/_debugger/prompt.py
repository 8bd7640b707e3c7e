"""The prompt of ``python -m phlox debug``: steps through a recording, and evaluates expressions of the user."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import numpy as jnp
from .._api.debug.prompt import Prompt
from .._api.recording.answers import first_line, number_text, range_text, type_text
from .._api.recording.record import Recording, turn_section
from .._api.recording.why_nan import why_nan
from .._trace.steps import Section, Step, Value, bodies

_WIDTH = 50


class Debugger(Prompt):
    """The prompt of a recording.

    ``up`` leaves the turn of a loop, ``down`` enters one. A line that is no command is evaluated as a Python expression
    of the variables.
    """

    def __init__(self, recording: Recording, stdin: Any = None, stdout: Any = None):
        super().__init__(stdin, stdout)
        self.recording = recording
        self.answer = why_nan(recording, None)
        #: (section, index of its current step), from the program to the innermost opened turn
        self.stack: list[tuple[Section, int]] = [(recording.section, -1)]
        self._go_to(self.answer.step)

    def _go_to(self, step: Step | None) -> None:
        """Goes to the step of the answer; opens the loops that contain it."""
        if step is None:
            return
        self.stack = [(self.recording.section, -1)]
        # Turns are evaluated anew when they are opened, so they are compared by their names.
        for turn_name in (name for name in step.path if " of scan" in name or " of while" in name):
            section = self.stack[-1][0]
            for loop in section.steps:
                # The first turn is evaluated to see whether it has the step.
                turn = next((t for t in bodies(loop) if t.name == turn_name), None) if loop.is_loop else None
                inner = turn.section() if turn is not None else None
                if inner is not None and _has(inner, step):
                    self.stack[-1] = section, loop.index
                    self.stack.append((inner, -1))
                    break
        self.stack[-1] = self.stack[-1][0], step.index

    @property
    def section(self) -> Section:
        """The section of the current step."""
        return self.stack[-1][0]

    @property
    def index(self) -> int:
        """The number of the current step in its section."""
        return self.stack[-1][1]

    def preloop(self) -> None:
        self.write(str(self.answer))
        self.write("forward, backward, print, plot, up, down, why, list, locals, continue, quit; help explains them")
        self.show()

    def show(self) -> None:
        """Prints the current step."""
        if self.index < 0:
            self.write(f"before the first of {len(self.section.steps)} steps")
            return
        step = self.section.steps[self.index]
        inside = "".join(f", in {name}" for name in reversed(step.path))
        self.write(f"step {step.index} of {len(self.section.steps)}{inside}: {first_line(step.where)}")
        for value in step.results:
            self.write(f"    {self.recording.name_of(value) or step.name}: {type_text(value)} {range_text(value)}")

    def variables(self) -> dict[str, Any]:
        """The arrays that are known at the current step, by the user's names, from the outermost section inwards."""
        known: dict[str, Any] = {"np": np, "jnp": jnp}
        for section, index in self.stack:
            known |= self.recording.values_in(section, index)
        if self.index >= 0 and self.section.steps[self.index].results:
            known["it"] = self.section.steps[self.index].results[0].array
        return known

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of the user."""
        # As globals, because a comprehension does not see the locals of `eval` before Python 3.12.
        return eval(expression or "it", self.variables())

    # -- commands

    def onecmd(self, line: str) -> bool:
        # An error in a line, such as a count that is no number, must not end the session.
        try:
            return super().onecmd(line)
        except Exception as error:
            self.write(f"{type(error).__name__}: {error}")
            return False

    def _move(self, count: int) -> None:
        section, index = self.stack[-1]
        self.stack[-1] = section, max(-1, min(index + count, len(section.steps) - 1))
        self.show()

    def do_forward(self, count: str) -> None:
        """forward [COUNT] (f): goes on by so many steps."""
        self._move(int(count or 1))

    def do_backward(self, count: str) -> None:
        """backward [COUNT] (b): goes back by so many steps."""
        self._move(-int(count or 1))

    def do_up(self, _: str) -> None:
        """up (u): leaves the turn of a loop."""
        if len(self.stack) > 1:
            self.stack.pop()
        self.show()

    def do_down(self, turn: str) -> None:
        """down [TURN] (d): enters a turn of the loop at the current step; the first turn without a number."""
        step = self.section.steps[self.index] if self.index >= 0 else None
        if step is None or not step.is_loop:
            self.write("this step is no loop")
            return
        section = turn_section(step, int(turn or 0))
        if section is None:
            self.write("the loop has fewer turns")
            return
        self.stack.append((section, -1))
        self.show()

    def do_print(self, expression: str) -> None:
        """print EXPRESSION (p): the value of an expression of the variables; ``it`` is the result of the step."""
        value = self.evaluate(expression)
        if value is not None:
            self.write(repr(value))

    def do_plot(self, expression: str) -> None:
        """plot EXPRESSION: a histogram of the elements; of complex ones, of their absolute values."""
        self.write(histogram(Value(jnp.asarray(self.evaluate(expression))).numbers))

    def do_locals(self, _: str) -> None:
        """locals: the variables, with their types and ranges."""
        for name, value in self.variables().items():
            if name not in ("np", "jnp"):
                shown = Value(value)
                self.write(f"{name}: {type_text(shown)} {range_text(shown)}")

    def do_list(self, _: str) -> None:
        """list (l): the source around the current line."""
        where = self.section.steps[self.index].where if self.index >= 0 else None
        if where is not None:
            self.write_source(where.file, where.line)

    def do_why(self, _: str) -> None:
        """why: where the nan comes from."""
        self.write(str(self.answer))

    def do_continue(self, _: str) -> bool:
        """continue (c): lets the program go on, with the error."""
        return True

    def do_quit(self, _: str) -> bool:
        """quit (q): ends the program."""
        raise SystemExit(1)

    do_f, do_b, do_u, do_d, do_p, do_l, do_c, do_q = (
        do_forward, do_backward, do_up, do_down, do_print, do_list, do_continue, do_quit,
    )  # fmt: skip


def _has(section: Section, step: Step) -> bool:
    """Whether a section has a step like this one: sections are evaluated anew each time they are opened."""
    return step.index < len(section.steps) and section.steps[step.index].eqn is step.eqn


def histogram(x: np.ndarray) -> str:
    """A histogram of the finite elements in text, and the numbers of the others."""
    x = np.abs(x) if x.dtype.kind == "c" else x
    values = x[np.isfinite(x)] if x.dtype.kind == "f" else x.astype(np.float64)
    lines = []
    if values.size:
        counts, edges = np.histogram(values, bins=min(10, max(1, values.size)))
        for count, low, high in zip(counts, edges, edges[1:], strict=False):
            bar = "█" * round(_WIDTH * count / counts.max())
            lines.append(f"{number_text(low):>10} … {number_text(high):>10} {count:6} {bar}")
    others = x.size - values.size
    return "\n".join([*lines, *([f"{others} are nan or infinite"] if others else [])]) or "no elements"
