"""Networks, by name."""
