"""Pipelines for drivers to be killed in, and the same results computed in batch.

Each result has the columns of its query and nothing of the user `flush`, whose events from far ahead make
all others final.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
FAR_AHEAD_MINUTES = 100_000
EVENT = "id long, visit long, user string, kind string, amount long, at timestamp"
CLICK = "id long, amount long, at timestamp"
SCHEMA = "kills"
"""The schema of PostgreSQL's tables."""


def _open_files(path, schema):
    return {
        "type": "files",
        "path": path,
        "format": "json",
        "schema": schema,
        "max_files_per_trigger": 1,
        "malformed": "fail",
        "provenance": False,
        "watermark": {"column": "at", "delay": "20m"},
    }


EVENTS = _open_files("events", EVENT)
CLICKS = _open_files("clicks", CLICK)


def _tell(minute):
    return (NOON + timedelta(minutes=minute)).isoformat()


def _event(number, minute, visit=None):
    visit = number if visit is None else visit
    return {
        "id": number,
        "visit": visit,
        "user": f"u{visit * visit % 7}",
        "kind": f"k{number // 25}",
        "amount": number * 7 % 11,
        "at": _tell(minute),
    }


def _click(number, minute):
    return {"id": number, "amount": number % 5, "at": _tell(minute + 3)}


# Each file goes back in time by less than the watermark's delay, and repeats some visits.
_MINUTES = {
    **{number: number * 2 for number in range(30)},
    **{number: 41 + (number - 30) * 2 for number in range(30, 60)},
    **{number: 80 + (number - 60) * 2 for number in range(60, 90)},
}
_REPEATED = {**{n: n - 5 for n in range(30, 35)}, **{n: n - 5 for n in range(60, 65)}}


def _list_events(numbers):
    return [_event(number, _MINUTES[number], _REPEATED.get(number)) for number in numbers]


def _list_clicks(numbers):
    # Of files that do not end where those of the events do, so that a match may come a batch later.
    return [_click(number, _MINUTES[number]) for number in numbers if number % 3]


_FLUSH = {**_event(1000, FAR_AHEAD_MINUTES), "user": "flush", "amount": 1}
BEFORE_KILLS = {
    "events/a.json": _list_events(range(30)),
    "events/b.json": _list_events(range(30, 60)),
    "clicks/a.json": _list_clicks(range(20)),
    "clicks/b.json": _list_clicks(range(20, 45)),
}
AFTER_KILLS = {
    "events/c.json": [*_list_events(range(60, 90)), _FLUSH],
    "clicks/c.json": [*_list_clicks(range(45, 90)), _click(2000, FAR_AHEAD_MINUTES)],
}


def _halt(moment):
    return {"type": "python", "name": moment, "function": f"kill_steps:halt_{moment}"}


@dataclass(frozen=True)
class Case:
    """A pipeline, and its result as a query over all rows."""

    result: str = "SELECT * FROM input"
    parts: dict = field(default_factory=dict)
    sink: dict = field(default_factory=dict)
    more_sinks: tuple = ()
    """Sinks that are written to after the first kill's moment, as `sink` is not."""

    def to_spec(self, name):
        """Put the sink between those that stand still."""
        sink = {"type": "delta", **self.sink}
        if sink["type"] == "delta":
            sink["table"] = name
        sinks = (
            [sink, _halt("before"), *self.more_sinks]
            if self.more_sinks
            else [_halt("before"), sink]
        )
        source = {} if "sources" in self.parts else {"source": EVENTS}
        return {"name": name, **source, **self.parts, "sinks": [*sinks, _halt("after")]}


def _step(sql, **parts):
    """Make a case of a query that is a step of the pipeline too."""
    sink = parts.pop("sink", {})
    return Case(sql, {"transform": {"sql": sql}, **parts}, sink)


def _window(window):
    return _step(
        "SELECT span.start AS since, span.end AS until, user, events, amount FROM ("
        f"SELECT {window} AS span, user, count(*) AS events, sum(amount) AS amount "
        f"FROM input GROUP BY {window}, user)"
    )


def _join(kind):
    return _step(
        f"SELECT e.id, e.user, c.amount AS clicked FROM events e {kind} JOIN clicks c "
        "ON e.id = c.id AND c.at BETWEEN e.at AND e.at + INTERVAL 10 MINUTES",
        sources={"events": EVENTS, "clicks": CLICKS},
    )


_TOTALS = "SELECT user, count(*) AS events, sum(amount) AS amount, max(at) AS latest FROM input GROUP BY user"
_NUMBERED = (
    "SELECT id, user, row_number() OVER by_user AS number, sum(amount) OVER by_user AS total "
    "FROM input WINDOW by_user AS (PARTITION BY user ORDER BY id)"
)
_NEWEST = (
    "SELECT * EXCEPT (rank) FROM (SELECT *, row_number() OVER (PARTITION BY user ORDER BY at DESC) "
    "AS rank FROM input) WHERE rank = 1"
)
_HISTORY = (
    "SELECT *, valid_to IS NULL AS is_current FROM (SELECT *, at AS valid_from, "
    "lead(at) OVER (PARTITION BY user ORDER BY at) AS valid_to FROM input) WHERE amount <> 0"
)
_KEYED = {"keys": ["user"], "sequence": ["at"]}
_DELETING = _KEYED | {"delete_when": "amount = 0"}


def _database(table, **fields):
    return {"type": "jdbc", "connection": "warehouse", "table": f"{SCHEMA}.{table}", **fields}


STATEFUL = {
    "tumbling_window": _window("window(at, '30 minutes')"),
    "sliding_window": _window("window(at, '30 minutes', '10 minutes')"),
    "session_window": _window("session_window(at, '6 minutes')"),
    "update": _step(
        _TOTALS,
        output_mode="update",
        sink={"mode": "upsert", "keys": "user", "sequence": "_batch"},
    ),
    "complete": _step(_TOTALS, output_mode="complete", sink={"mode": "overwrite"}),
    "select_distinct": _step(
        "SELECT DISTINCT user, kind FROM input",
        output_mode="update",  # an aggregation to Spark, which has no time to be final at
        sink={"mode": "upsert", "keys": ["user", "kind"], "sequence": "_batch"},
    ),
    "drop_duplicates": Case(
        "SELECT DISTINCT user, kind FROM input", {"transform": {"python": "kill_steps:pair"}}
    ),
    "drop_duplicates_within_watermark": Case(
        "SELECT DISTINCT visit, user FROM input", {"transform": {"python": "kill_steps:visit"}}
    ),
    "inner_join": _join("INNER"),
    "left_join": _join("LEFT"),
    "transform_with_state": Case(_NUMBERED, {"transform": {"python": "kill_steps:number"}}),
    "limit": Case(
        "SELECT * FROM input WHERE id < 40", {"transform": {"sql": "SELECT * FROM input LIMIT 40"}}
    ),
}
SINKS = {
    "delta_append": Case(),
    "delta_upsert": Case(f"{_NEWEST} AND amount <> 0", sink={"mode": "upsert", **_DELETING}),
    "delta_scd2": Case(_HISTORY, sink={"mode": "scd2", **_DELETING}),
    "delta_routes": Case(sink={"route_by": "kind"}),
    "jdbc_append": Case(sink=_database("jdbc_append")),
    "jdbc_upsert": Case(_NEWEST, sink=_database("jdbc_upsert", mode="upsert", **_KEYED)),
    "parquet": Case(sink={"type": "files", "path": "parquet", "format": "parquet"}),
}
FAN_OUT = Case(
    "SELECT * FROM input WHERE amount > 0",
    {"expect": [{"name": "positive", "check": "amount > 0"}]},
    {"name": "all"},
    (
        _database("fan_out", name="large", where="amount >= 5"),
        {
            "type": "files",
            "name": "users",
            "path": "users",
            "format": "parquet",
            "columns": ["id", "user"],
        },
    ),
)
NOTED = {
    "python": Case(sink={"type": "python", "function": "kill_steps:push"}),
    "spark": Case(
        sink={"type": "spark", "format": "parquet", "options": {"path": "${KILLS_SPARK}"}}
    ),
}
CASES = STATEFUL | SINKS | {"fan_out": FAN_OUT} | NOTED
