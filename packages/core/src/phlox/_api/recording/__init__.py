"""Recordings: a function is run as it is compiled, and its program answers questions about what happened.

`record` traces and runs the function (record.py). The program that was compiled, with the user's line at each equation,
is evaluated again on the same arguments by operations that are compiled one by one (_trace/steps.py). Calls, branches
and custom rules are opened; a loop is one step, whose turns are evaluated when a question needs them. Each value knows
the step that computed it, so that a question walks from a bad result back to its origin (_trace/origins.py). The flag
`debug_nans` finds the line of a nan in the same way. Variables of the user are read from the source line of a step
(names.py).

A question is a function in a file of its own (why_nan.py, why_zero.py, why_large.py, watch.py, compare.py) and a method
of `Recording`. It returns an `Answer` (answers.py), which has the user's line and prints itself.

The functions in show.py and compiled.py need no recording: they look at a tree, or at a compiled program.
The command ``python -m phlox debug`` is in `_debugger`.
"""
