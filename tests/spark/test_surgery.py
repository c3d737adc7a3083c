"""A query that was set back, or led past a batch, goes on with just the rows it should."""

import json
import os

import pytest

from tidegate.core.errors import SurgeryError
from tidegate.core.surgery.copy import CheckpointCopy
from tidegate.core.surgery.rewind import Rewind
from tidegate.core.surgery.sinks import SinkGuard
from tidegate.core.surgery.skip import Skip
from tidegate.spark.runner import run_pipeline

FILES = {
    "type": "files",
    "path": "landing",
    "format": "json",
    "schema": "id long, at timestamp",
    "max_files_per_trigger": 1,
    "provenance": False,
    "malformed": "fail",
}
LANDED_AT = 1_760_000_000
ONCE = {"transform": [{"python": "steps:once"}]}


@pytest.fixture
def land(settings):
    """Land files of two rows each, the second of which the next file has again."""
    folder = settings.locate("landing")
    folder.mkdir(parents=True)

    def write(*numbers):
        for number in numbers:
            rows = ({"id": number + n, "at": "2026-01-01T00:00:00Z"} for n in range(2))
            file = folder / f"{number}.json"
            file.write_text("\n".join(map(json.dumps, rows)))
            # Spark takes the oldest first: files of the same moment would come in any order.
            os.utime(file, (LANDED_AT + number, LANDED_AT + number))

    return write


@pytest.mark.parametrize("remembers", [False, True])
def test_what_followed_a_batch_is_read_again_once_the_table_is_restored(
    spark, runs, pipeline_of, settings, land, rows_of, remembers
):
    settings.pipelines.mkdir()
    (settings.pipelines / "steps.py").write_text(
        "def once(df, context):\n    return df.dropDuplicates(['id'])\n"
    )
    pipeline = pipeline_of(FILES, **(ONCE if remembers else {}))
    land(*range(4))
    runs.run(pipeline)
    expected = rows_of("out", "id")
    checkpoint, query_id = settings.checkpoint_of("p"), runs.find_query_id(pipeline)

    def guard(*, renews):
        return SinkGuard(pipeline, settings, query_id, 1, renews, accepts_duplicates=False)

    with pytest.raises(SurgeryError, match="Delta would pass over batches 2 to 3"):
        guard(renews=False).check()
    with pytest.raises(SurgeryError, match="still has the rows") as refused:
        guard(renews=True).check()
    restore = next(part for part in str(refused.value).split("; ") if "RESTORE" in part)
    spark.sql(restore[restore.index("RESTORE") :])
    guard(renews=True).check()
    Rewind.to(checkpoint, 1, renews=True).plan().apply()

    land(4)
    run = runs.run(pipeline)
    assert [batch.batch_id for batch in run.batches] == [2, 3, 4]
    again = [(4,), (5,)]
    assert rows_of("out", "id") == sorted(expected + (again[1:] if remembers else again))


@pytest.mark.parametrize(("bad", "batch"), [(1, 0), (3, 1), (5, 2)])
def test_a_batch_that_can_never_be_written_is_led_past(
    runs, pipeline_of, settings, land, rows_of, bad, batch
):
    check = f"SELECT id, assert_true(id <> {bad}, 'poisoned') AS ok FROM input"
    pipeline = pipeline_of(FILES, transform=[{"sql": check}])
    land(0, 2, 4)
    plan = runs.plan(pipeline)
    with pytest.raises(Exception, match="poisoned"):
        run_pipeline(pipeline, settings, plan.run_id)
    Skip(settings.checkpoint_of("p")).plan().apply()
    land(6)
    runs.run(pipeline)
    assert rows_of("out", "id") == [(n,) for n in range(8) if n not in (bad - 1, bad)]
    left_out = json.loads((settings.state_of("p") / "skips" / f"{batch}.json").read_text())
    assert left_out["sources"][0]["endOffset"] == {"logOffset": batch}


COUNT = """
import pandas as pd
from pyspark.sql.streaming import StatefulProcessor


class Count(StatefulProcessor):
    def init(self, handle):
        self._count = handle.getValueState("count", "n long")

    def handleInputRows(self, key, rows, timerValues):
        count = (self._count.get()[0] if self._count.exists() else 0) + sum(map(len, rows))
        self._count.update((count,))
        yield pd.DataFrame({"n": [count]})

    def close(self):
        pass


def count(df, context):
    kinds = df.withColumn("kind", df.id * 0).groupBy("kind")
    return kinds.transformWithStateInPandas(Count(), "n long", "Append", "none")
"""


@pytest.mark.parametrize("is_move", [True, False])
def test_what_a_query_keeps_by_itself_goes_along_with_its_checkpoint(
    runs, pipeline_of, settings, land, rows_of, is_move
):
    settings.pipelines.mkdir()
    (settings.pipelines / "counting.py").write_text(COUNT)
    pipeline = pipeline_of(FILES, transform=[{"python": "counting:count"}])
    land(0)
    runs.run(pipeline)
    checkpoint = settings.checkpoint_of("p")
    with pytest.raises(SurgeryError, match="remembers rows"):
        Skip(_leave_pending(checkpoint)).plan()
    (checkpoint / "offsets" / "1").unlink()
    copy = CheckpointCopy(checkpoint, settings.checkpoint_of("q"), is_move=is_move)
    copy.apply()
    if not is_move:
        for file in sorted(checkpoint.rglob("*"), reverse=True):  # it must not be needed any more
            file.unlink() if file.is_file() else file.rmdir()
    land(2)
    run = runs.run(pipeline_of(FILES, name="q", transform=[{"python": "counting:count"}]))
    assert [batch.batch_id for batch in run.batches] == [1]
    assert rows_of("out", "n") == [(2,), (4,)]


def _leave_pending(checkpoint):
    (checkpoint / "offsets" / "1").write_bytes((checkpoint / "offsets" / "0").read_bytes())
    return checkpoint
