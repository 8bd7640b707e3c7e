"""Primitives of sliding windows: convolution and pooling."""
