"""What is there to do: one module for each kind of source."""
