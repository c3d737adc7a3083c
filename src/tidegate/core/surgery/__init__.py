"""Changing a checkpoint by hand, so that nothing is silently wrong and all can be undone."""
