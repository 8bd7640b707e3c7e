"""Primitives that call code outside of the compiled program: callbacks, foreign functions, checks."""
