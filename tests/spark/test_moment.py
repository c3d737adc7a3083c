"""Within a batch, now is the batch's own time."""

from datetime import UTC, date, datetime

import pytest

from tidegate.core.checkpoint.log import read_batch_offsets
from tidegate.spark.moment import pin_time

BATCH_MS = 1_767_225_599_500  # half a second before the year 2026


@pytest.fixture
def rows(spark):
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    return session.range(1)


@pytest.mark.parametrize(
    "spelled",
    ["current_timestamp()", "now()", "current_timestamp", "to_timestamp(now())"],
)
def test_now_is_the_time_of_the_batch(rows, spelled):
    pinned = pin_time(rows.selectExpr(f"unix_millis({spelled}) AS at"), BATCH_MS)
    assert [row.at for row in pinned.collect()] == [BATCH_MS]


def test_the_day_and_the_time_of_the_session_s_zone_are_those_of_the_batch(rows):
    rows.sparkSession.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    asked = rows.selectExpr("current_date() AS day", "CAST(localtimestamp() AS string) AS at")
    (row,) = pin_time(asked, BATCH_MS).collect()
    assert (row.day, row.at) == (date(2026, 1, 1), "2026-01-01 00:59:59.5")


def test_now_is_found_in_conditions_joins_and_subqueries(rows):
    rows.createOrReplaceTempView("ids")
    found = rows.sparkSession.sql(
        "SELECT a.id FROM ids a JOIN ids b ON a.id = b.id AND unix_millis(now()) < 1767225600000 "
        "WHERE a.id IN (SELECT id FROM ids WHERE year(current_date()) = 2025)"
    )
    assert pin_time(found, BATCH_MS).count() == 1


def test_rows_that_ask_for_no_time_are_left_as_they_are(rows):
    assert pin_time(rows, BATCH_MS) is rows


def test_a_row_is_either_kept_or_put_aside_though_a_rule_asks_for_the_time(
    runs, pipeline_of, settings, rows_of
):
    landing = settings.locate("landing")
    landing.mkdir(parents=True)
    # Times around now, so close that a second look at the clock would judge them otherwise.
    begin = datetime.now(UTC).timestamp() * 1000
    lines = (f'{{"id": {n}, "at_ms": {int(begin) + n * 10}}}' for n in range(3000))
    (landing / "1.json").write_text("\n".join(lines))
    pipeline = pipeline_of(
        {
            "type": "files",
            "path": "landing",
            "format": "json",
            "schema": "id long, at_ms long",
            "max_files_per_trigger": 1,
        },
        transform=[{"sql": "SELECT id, at_ms, current_timestamp() AS seen_at FROM input"}],
        expect=[
            {
                "name": "past",
                "check": "at_ms <= unix_millis(current_timestamp())",
                "on_fail": "quarantine",
            }
        ],
    )
    run = runs.run(pipeline)
    written = rows_of("out", "id", "seen_at")
    aside = rows_of("quarantine/p", "rule")
    assert len(written) + len(aside) == 3000
    assert run.summary.quarantined == len(aside)
    planned = read_batch_offsets(settings.checkpoint_of("p"), 0).timestamp_ms
    assert len(written) == max(0, min(3000, 1 + (planned - int(begin)) // 10))
    assert {round(seen_at.timestamp() * 1000) for _, seen_at in written} <= {planned}
