"""A long run of a service in one process: many short runs that end in every way, after which nothing may have grown.

``python -m benchmarks.soak`` (``make soak``) says how many; ``--quick`` is a smoke test, which the tests run too.
"""
