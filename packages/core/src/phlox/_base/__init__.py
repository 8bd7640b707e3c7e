"""The ground: errors, configuration, pytrees and source locations. Knows the standard library and NumPy."""
