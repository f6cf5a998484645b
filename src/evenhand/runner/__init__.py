"""Behind `ask`: plan, shards, store, progress."""
