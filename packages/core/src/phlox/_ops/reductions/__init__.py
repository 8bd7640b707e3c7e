"""Primitives that combine elements along axes: reductions and cumulative reductions."""
