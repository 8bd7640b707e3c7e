"""Operands of public functions: checked, promoted, broadcast. lax and numpy stand above it, the operations below."""
