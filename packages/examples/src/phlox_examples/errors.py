"""The only error that the programs raise themselves. Imports only the standard library."""

import sys


class ProgramError(Exception):
    """An error that the user of the command can fix; only its message is printed, as one line.

    Attribute `status` is the exit status: 2 for an invalid command, 1 for a run that failed.
    """

    def __init__(self, text: str, status: int = 2):
        super().__init__(text)
        self.status = status

    def report(self) -> int:
        """Prints the line on stderr and returns the exit status."""
        print(f"./train: {self}", file=sys.stderr)
        return self.status
