"""Elementwise functions, and the ufunc objects made of them."""
