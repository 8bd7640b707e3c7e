"""`export`: lowered functions that can be saved to files, and symbolic dimensions."""
