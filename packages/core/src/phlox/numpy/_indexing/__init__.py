"""Indexing: reading, `.at` updates, references, and functions of positions."""
