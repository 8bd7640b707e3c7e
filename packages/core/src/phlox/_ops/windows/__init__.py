"""Primitives of windows that move over arrays: convolution and pooling."""
