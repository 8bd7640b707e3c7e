"""Operators and methods of arrays, and functions that take `out_sharding`."""
