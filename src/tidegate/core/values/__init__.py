"""How the bytes of values are described: schemas in files, and in a registry."""
