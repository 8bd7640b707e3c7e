"""Indices: read, written with `.at`, into references, and functions of positions."""
