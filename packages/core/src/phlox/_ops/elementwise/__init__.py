"""Elementwise primitives: arithmetic, comparison, special functions."""
