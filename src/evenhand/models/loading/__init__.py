"""From what a user types to weights on a device."""
