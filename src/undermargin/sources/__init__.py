"""Data sets: the formats that can be scanned, and views that add an index or other labels."""
