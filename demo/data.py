"""Making orders: files land, and among them are late, duplicate and broken records.

Every drop is decided by its number alone, so that the same drops give the same files anywhere.
"""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tidegate.core.settings import Settings

FILES_PER_DROP = 10
ORDERS_PER_FILE = 200
_FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)
_PRODUCTS = {"kettle": 39.9, "lamp": 24.5, "chair": 89.0, "desk": 240.0, "mug": 7.25}
_COUNTRIES = ("DE", "FR", "NL", "PL", "SE")
_CUSTOMERS = 50


def land_orders(data: Path) -> list[Path]:
    """Land one more drop of files and return them."""
    landing = data / "landing" / "orders"
    landing.mkdir(parents=True, exist_ok=True)
    write_customers(data)
    drop = 1 + max((int(path.name.split("-")[1]) for path in landing.glob("drop-*")), default=-1)
    chance = random.Random(drop)
    return [_land_file(landing, drop, number, chance) for number in range(FILES_PER_DROP)]


def write_customers(data: Path) -> None:
    """Write the customers that orders are joined with."""
    folder = data / "reference" / "customers"
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["customer_id,name,country"]
    lines += [f"{i},Customer {i},{_COUNTRIES[i % len(_COUNTRIES)]}" for i in range(_CUSTOMERS)]
    publish(folder / "customers.csv", "\n".join(lines) + "\n")


def _land_file(landing: Path, drop: int, number: int, chance: random.Random) -> Path:
    first_id = (drop * FILES_PER_DROP + number) * ORDERS_PER_FILE
    lines = [json.dumps(make_order(first_id + i, drop, chance)) for i in range(ORDERS_PER_FILE)]
    if drop > 0:
        lines += _make_trouble(first_id, drop, chance)
    path = landing / f"drop-{drop:04}-{number:02}.json"
    publish(path, "\n".join(lines) + "\n")
    return path


def make_order(order_id: int, drop: int, chance: random.Random) -> dict[str, object]:
    """Make an order of the hour that a drop stands for."""
    product = chance.choice(list(_PRODUCTS))
    at = _FIRST_DAY + timedelta(hours=drop, seconds=chance.randrange(3600))
    return {
        "order_id": order_id,
        "customer_id": chance.randrange(_CUSTOMERS),
        "product": product,
        "quantity": chance.randint(1, 5),
        "unit_price": _PRODUCTS[product],
        "event_time": at.isoformat(),
    }


def _make_trouble(first_id: int, drop: int, chance: random.Random) -> list[str]:
    """Make what a landing zone really gets: an old order again, a late one, broken lines."""
    again = make_order(chance.randrange(drop * FILES_PER_DROP * ORDERS_PER_FILE), drop, chance)
    late = make_order(1_000_000_000 + first_id, drop, chance)
    late["event_time"] = (_FIRST_DAY + timedelta(hours=drop) - timedelta(days=2)).isoformat()
    negative = make_order(2_000_000_000 + first_id, drop, chance) | {"quantity": -1}
    return [json.dumps(again), json.dumps(late), json.dumps(negative), '{"order_id": 17, "quan']


def publish(path: Path, text: str) -> None:
    """Write a file so that it appears under its name only when it is whole."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text)
    partial.replace(path)


def main() -> None:
    """Land one more drop of files where the demo reads them."""
    files = land_orders(Path(Settings.from_environment().data))
    print(f"landed {len(files)} files in {files[0].parent}: {files[0].name} … {files[-1].name}")


if __name__ == "__main__":
    main()
