"""Functions for arguments of varying sizes."""
