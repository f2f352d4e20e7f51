"""Drop-in replacements for other packages' interfaces."""
