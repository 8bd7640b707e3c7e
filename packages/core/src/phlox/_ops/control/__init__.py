"""Primitives with jaxprs among their parameters: loops, branches, calls, custom derivatives, checkpoint."""
