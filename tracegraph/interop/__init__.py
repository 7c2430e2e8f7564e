"""Bridges to other libraries' data."""
