"""Where a pipeline writes to: one module for each kind of sink."""
