"""Transformations of programs: forward derivatives, linearization, transposition, batching."""
