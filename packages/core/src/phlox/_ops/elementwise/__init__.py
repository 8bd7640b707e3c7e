"""Primitives of one element of each operand: arithmetic, comparison, special functions."""
