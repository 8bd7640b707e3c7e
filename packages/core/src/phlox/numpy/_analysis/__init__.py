"""Calculus of samples, convolution, polynomials."""
