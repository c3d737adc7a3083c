"""All pipelines of a deployment at a glance, and one of them in full; read from files alone."""
