"""Functions applied along axes or to all examples."""
