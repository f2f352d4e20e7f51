"""A scan: its folder, its settings, people's decisions and what they change, cleaning, and the procedure itself."""
