"""A relational database's table as a sink: PostgreSQL, and what another one would have to do."""
