"""Where batches go: one module per kind of sink."""
