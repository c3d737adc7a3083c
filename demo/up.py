"""`make up`: Airflow with its UI, left running."""

from __future__ import annotations

import sys

from rich.console import Console

from demo.stack import StackError, find_stack, start_stack
from tidegate.core.settings import Settings


def main() -> int:
    """Start Airflow unless it runs already, and say where it is."""
    console = Console()
    settings = Settings.from_environment()
    stack = find_stack(settings)
    if stack is None:
        try:
            with console.status("starting Airflow"):
                stack = start_stack(settings)
        except StackError as error:
            console.print(str(error), style="red", markup=False)
            return 1
    console.print(f"Airflow is at [b]{stack.url}[/] (this machine only; no login)")
    console.print(f"its log is {stack.log}", highlight=False)
    console.print("next: [b]make demo[/] runs the pipelines in it, [b]make down[/] stops it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
