"""The demo's transforms."""
