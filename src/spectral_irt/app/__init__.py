"""The commands on a local page, for people without a terminal: they do the work, in processes of their own."""
