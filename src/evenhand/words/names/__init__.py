"""Groups of first names: chosen from name tables, and checked for what else tells them apart."""
