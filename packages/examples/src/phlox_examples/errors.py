"""The one error that the programs raise on purpose. Knows the standard library alone."""

import sys


class ProgramError(Exception):
    """Something that the person who typed the command can set right; its text is the one line that they see.

    Attribute `status` is the exit status: 2 for a command that cannot be carried out, 1 for a run that went wrong.
    """

    def __init__(self, text: str, status: int = 2):
        super().__init__(text)
        self.status = status

    def report(self) -> int:
        """Prints the line on stderr and returns the exit status."""
        print(f"./train: {self}", file=sys.stderr)
        return self.status
