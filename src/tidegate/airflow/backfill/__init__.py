"""Backfills from Airflow's UI: the form, and the tasks that do what it asks for."""
