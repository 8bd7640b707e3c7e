"""Primitives that combine elements along axes: reductions and running reductions."""
