"""A scan: its folder, its settings, the procedure that fills it, and what people decided about its samples."""
