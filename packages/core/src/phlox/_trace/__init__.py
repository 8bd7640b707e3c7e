"""Tracing: base classes of traces and tracers, and the trace that records Python functions as Jaxprs. Imports `_ir`."""
