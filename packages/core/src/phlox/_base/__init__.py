"""What all layers use: errors, settings, pytrees and source locations. Imports the standard library, and jaxlib's C++
core through `native`."""
