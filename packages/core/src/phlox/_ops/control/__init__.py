"""Primitives that hold programs: loops, branches, calls, custom rules, checkpoint."""
