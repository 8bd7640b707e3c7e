"""The primitives: one file for each family, all rules of an operation together."""
