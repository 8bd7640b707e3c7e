"""Primitives of several devices: collectives, shard_map, resharding."""
