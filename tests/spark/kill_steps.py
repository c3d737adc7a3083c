"""The Python of the pipelines whose drivers are killed: it is copied beside their specs."""

import json
import os
import threading
from pathlib import Path

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

HALT_AT = "KILLS_HALT_AT"
"""The variable that says where a driver is to stand still; without it, none does."""
MARKS = "KILLS_MARKS"
"""The variable of the folder that tells which pipelines stand still."""
PUSHED = "KILLS_PUSHED"
"""The variable of the file that `push` adds a line to."""
HALTED_BATCH = 1
_PATIENCE_SECONDS = 300


def halt_before(df, batch):
    """Stand still, as a sink, before the one that matters."""
    _halt("before", batch)


def halt_after(df, batch):
    """Stand still, as a sink, after the one that matters."""
    _halt("after", batch)


def _halt(moment, batch):
    if os.environ.get(HALT_AT) != moment or batch.id != HALTED_BATCH:
        return
    (Path(os.environ[MARKS]) / batch.pipeline).touch()
    threading.Event().wait(_PATIENCE_SECONDS)
    raise TimeoutError("nobody killed the driver")


def push(df, batch):
    """Tell what it was called with."""
    ids = sorted(row.id for row in df.collect())
    with Path(os.environ[PUSHED]).open("a") as file:
        file.write(json.dumps({"ids": ids, "batch": batch.id, "is_replay": batch.is_replay}) + "\n")
    return len(ids)


def pair(df, context):
    """Take each user with each kind once."""
    return df.select("user", "kind").dropDuplicates()


def visit(df, context):
    """Take each visit once, as long as it is remembered."""
    return df.dropDuplicatesWithinWatermark(["visit"]).select("visit", "user")


class Numbering(StatefulProcessor):
    """Numbers the events of a user, and adds up their amounts."""

    def init(self, handle):
        self._seen = handle.getValueState("seen", "number long, total long")

    def handleInputRows(self, key, rows, timerValues):  # noqa: ARG002, N802, N803
        number, total = self._seen.get() if self._seen.exists() else (0, 0)
        for row in sorted(rows, key=lambda row: row.id):
            number, total = number + 1, total + row.amount
            yield Row(id=row.id, user=key[0], number=number, total=total)
        self._seen.update((number, total))

    def close(self):
        pass


def number(df, context):
    """Number the events of each user."""
    return df.groupBy("user").transformWithState(
        statefulProcessor=Numbering(),
        outputStructType="id long, user string, number long, total long",
        outputMode="Append",
        timeMode="None",
    )
