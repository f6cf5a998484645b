"""Other libraries' interfaces over evenhand."""
