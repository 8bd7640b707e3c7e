"""`vmap`, and functions with a batching rule of their own."""
