"""The DAG of maintenance."""
