"""Derivatives of functions of pytrees: grad, jvp, vjp, custom rules, and `checkpoint`."""
