"""Primitives for several devices: collectives, shard_map, reshard."""
