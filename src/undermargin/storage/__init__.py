"""Access to files: atomic writes, JSON, CSV, locks, checksums, and consent to read what a foreign scan names."""
