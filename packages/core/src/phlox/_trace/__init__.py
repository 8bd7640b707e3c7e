"""Tracing: the interpreters' common ground, and the one that records Python as a Jaxpr."""
