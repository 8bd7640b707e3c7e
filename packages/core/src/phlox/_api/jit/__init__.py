"""`jit`: arguments, tracing, caches, the fast path of calls, and the stages of ahead-of-time compilation."""
