"""Engines: how networks are trained here."""
