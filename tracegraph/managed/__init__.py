"""State keys computed from the run's position instead of being stored."""

from tracegraph.managed.is_last_step import IsLastStep, RemainingSteps

__all__ = ["IsLastStep", "RemainingSteps"]
