"""What is wrong with a checkpoint, its source or its sink, in words."""
