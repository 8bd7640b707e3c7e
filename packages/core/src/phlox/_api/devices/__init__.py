"""Arrays on devices and meshes: transfers, sharding, pmap and shard_map."""
