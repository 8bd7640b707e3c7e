"""``python -m phlox debug``: stops a program at its first nan, with the recording of the compiled call."""
