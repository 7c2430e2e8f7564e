"""Runs as objects: a stream of protocol events, and typed projections that transformers make of them."""
