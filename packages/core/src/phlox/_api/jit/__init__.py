"""`jit`: arguments bound and checked, programs traced and kept, the hot path of calls, and the stages before them."""
