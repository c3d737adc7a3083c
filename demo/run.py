"""`make demo`: the medallion once through a real Airflow, with a table at the end."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from rich.console import Console

from demo.chain import Chain
from demo.data import land_orders
from demo.stack import StackError
from tidegate.core.settings import Settings

CHAIN = ("orders_bronze", "orders_silver", "orders_gold")


def main() -> int:
    """Run the demo."""
    console = Console()
    settings = Settings.from_environment()
    landing = Path(settings.data) / "landing" / "orders"
    if not landing.exists():
        console.print(f"landed {len(land_orders(Path(settings.data)))} files in {landing}")
    chain = Chain(CHAIN, settings, console)
    began = time.monotonic()
    try:
        runs = chain.run()
    except StackError as error:
        console.print(str(error), style="red", markup=False)
        return 1
    chain.print_result(runs, time.monotonic() - began)
    console.print("next: [b]make data[/] lands more files, [b]make up[/] shows Airflow's UI")
    return 0 if all(run.state == "success" for run in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
