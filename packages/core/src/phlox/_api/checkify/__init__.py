"""`checkify`: checks in a program become a result."""
