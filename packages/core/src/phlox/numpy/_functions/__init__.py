"""Functions that apply Python functions along axes or to all examples."""
