"""Streams: events in, typed parts out."""
