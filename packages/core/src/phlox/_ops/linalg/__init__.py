"""Primitives of linear algebra: contractions, factorizations, Fourier transforms."""
