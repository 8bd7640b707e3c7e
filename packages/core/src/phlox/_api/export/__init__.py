"""`export`: compiled functions as files, with symbolic dimensions."""
