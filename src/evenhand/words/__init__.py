"""Text and words about people: lexicons, list formats, names, word sets, swaps."""
