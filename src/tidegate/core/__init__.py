"""What a pipeline is and how far it got; knows neither Spark nor Airflow."""
