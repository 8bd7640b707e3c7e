"""Primitives of random bits and keys."""
