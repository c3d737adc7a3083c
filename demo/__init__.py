"""The demo: a shop's orders through bronze, silver and gold, on one machine."""
