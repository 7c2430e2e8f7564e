"""Carrying out decisions: two thin drivers, on threads and on asyncio, over one engine. Drivers wait; they decide nothing."""
