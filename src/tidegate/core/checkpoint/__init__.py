"""Reading a Spark checkpoint without Spark: logs, positions, progress."""
