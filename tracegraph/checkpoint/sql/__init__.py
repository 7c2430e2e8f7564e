"""What the savers in SQL databases share: rows, statements, and what is done inside a transaction; no connections."""
