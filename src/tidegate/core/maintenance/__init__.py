"""What there is to tidy up, decided without a JVM."""
