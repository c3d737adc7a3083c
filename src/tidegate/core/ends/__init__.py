"""Where a source ends right now, found without a JVM."""
