"""Adapters to training frameworks: leaves that translate a framework's training for a `Tracker`, and nothing more."""
