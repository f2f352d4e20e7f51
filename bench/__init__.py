"""Speed, memory and quality, measured. Times are ratios of one run: the machine may be busy, the ratio stays."""
