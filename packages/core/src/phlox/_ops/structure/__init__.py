"""Primitives that move elements about: reshaping, slices, gather and scatter, sorting."""
