"""``python -m phlox doctor``: what is installed and set here, and whether the devices compute what NumPy does.

A program for the command line: it stands above the public API, which it uses as a user's program would.
"""
