"""Primitives that reach out of the program: callbacks, foreign functions, checks."""
