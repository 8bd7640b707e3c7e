"""Checks, promotion and broadcasting of operands for public functions. Imported by lax and numpy; imports `_ops`."""
