"""Arrays reshaped, joined, repeated, padded and edited."""
