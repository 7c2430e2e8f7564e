"""Savers: where checkpoints live."""
