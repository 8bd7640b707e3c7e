"""`DebugInfo`: what a Jaxpr knows of the function that it was traced from, for tools and messages."""

from __future__ import annotations

from typing import NamedTuple


class DebugInfo(NamedTuple):
    """Description of a traced function: its source position, the names of its arguments, and the paths of its results.

    `arg_names` and `result_paths` are None if they are not known.
    """

    traced_for: str
    func_src_info: str
    arg_names: tuple[str, ...] | None
    result_paths: tuple[str, ...] | None = None

    @property
    def func_name(self) -> str:
        """The name of the function."""
        return self.func_src_info.split(" ")[0]

    @property
    def func_filename(self) -> str | None:
        """The file that defines the function; None if it is not known."""
        return self.func_src_info.partition(" at ")[2].rpartition(":")[0] or None

    @property
    def func_lineno(self) -> int | None:
        """The line where the function begins; None if it is not known."""
        return int(self.func_src_info.rpartition(":")[2]) if self.func_filename else None

    def safe_arg_names(self, expected_count: int) -> tuple[str, ...]:
        """The names of the arguments; "" for each if they are not known."""
        return ("",) * expected_count if self.arg_names is None else self.arg_names

    def safe_result_paths(self, expected_count: int) -> tuple[str, ...]:
        """The paths of the results; "" for each if they are not known."""
        return ("",) * expected_count if self.result_paths is None else self.result_paths
