"""The bytes of values as columns: one module for each kind of format."""
