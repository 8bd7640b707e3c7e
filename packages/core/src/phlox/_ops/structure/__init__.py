"""Primitives that rearrange elements: reshaping, slices, gather and scatter, sorting."""
