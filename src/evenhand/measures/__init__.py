"""Numbers from scores or vectors that already exist: the jobs behind `evenhand measure`."""
