"""Inside the driver: source, steps, sink, and the query that ties them together."""
