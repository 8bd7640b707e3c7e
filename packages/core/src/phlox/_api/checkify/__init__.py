"""`checkify`: failed checks of a function become a result."""
