"""`make down`: stop what `make up` started."""

from __future__ import annotations

from demo.stack import find_stack
from tidegate.core.settings import Settings


def main() -> None:
    """Stop Airflow, if it runs."""
    stack = find_stack(Settings.from_environment())
    if stack is None:
        print("Airflow is not running")
        return
    stack.stop()
    print("Airflow is stopped")


if __name__ == "__main__":
    main()
