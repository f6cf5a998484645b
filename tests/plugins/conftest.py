"""The package below is installed by its test, not imported from here."""

collect_ignore = ["evenhand_courtesy"]
