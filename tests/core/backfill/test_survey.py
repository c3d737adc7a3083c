"""What of a range is there: found, or refused with what is left of it."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.core.backfill.test_request import DELTA, FILES, KAFKA, UPSERT, spec
from tidegate.core.backfill.range import DeltaRange, FilesRange, KafkaRange
from tidegate.core.backfill.request import parse_request
from tidegate.core.backfill.survey import Found, Survey
from tidegate.core.errors import BackfillError, BlockedError

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def find(settings):
    def find(loaded, **given):
        asked = {"pipeline": loaded.name, "mode": "append"} | given
        request, pipeline = parse_request(asked, [loaded])
        return Survey(request, pipeline, settings).find().range

    return find


@pytest.fixture
def refuse(find):
    def refuse(loaded, **given):
        with pytest.raises(BackfillError) as refused:
            find(loaded, **given)
        return str(refused.value)

    return refuse


class TestFiles:
    @pytest.fixture
    def landed(self, settings, checkpoint_of):
        folder = settings.locate("landing")
        names = [str(folder / name) for name in ("a.json", "b.json", "c.txt")]
        checkpoint_of("landed").log_files(0, *names).batch(0)
        folder.mkdir(parents=True)
        for hour, name in enumerate(("a.json", "b.json", "c.txt")):
            (folder / name).write_text("{}")
            at = (NOON + timedelta(hours=hour)).timestamp()
            os.utime(folder / name, (at, at))
        return str(folder)

    @pytest.mark.parametrize(
        ("given", "names"),
        [
            ({"glob": "*.json"}, "a.json b.json"),
            ({"paths": ["c.txt", "a.json"]}, "c.txt a.json"),
            ({"since": "2026-01-01T13:00:00Z"}, "b.json c.txt"),
            ({"until": "2026-01-01T13:00:00Z"}, "a.json"),
            ({"glob": "*.json", "since": "2026-01-01T13:00:00Z"}, "b.json"),
        ],
    )
    def test_files_are_chosen(self, landed, find, given, names):
        found = find(spec("landed", FILES), **given)
        assert found == FilesRange(tuple(f"{landed}/{name}" for name in names.split()))

    def test_files_that_are_gone_are_told(self, landed, refuse):
        told = refuse(spec("landed", FILES), paths=["a.json", "x.json", f"{landed}/y.json"])
        assert f"{landed}/x.json, {landed}/y.json" in told

    @pytest.mark.parametrize("is_pending", [False, True])
    def test_files_that_live_runs_have_yet_to_read_are_told(
        self, landed, refuse, checkpoint_of, is_pending
    ):
        (Path(landed) / "new.json").write_text("{}")
        if is_pending:
            checkpoint_of("landed").log_files(1, f"{landed}/new.json").offset(1)
        told = refuse(spec("landed", FILES), glob="*.json")
        assert f"have not committed {landed}/new.json yet" in told

    @pytest.mark.usefixtures("landed")
    def test_an_empty_range_is_told(self, refuse):
        assert "nothing in the source lies in it" in refuse(spec("landed", FILES), glob="*.csv")

    def test_a_name_that_spark_takes_for_a_pattern_is_refused(self, landed, find):
        (Path(landed) / "report[1].json").write_text("{}")
        with pytest.raises(BlockedError, match="Rename them"):
            find(spec("landed", FILES), glob="*.json")


class TestDelta:
    @pytest.fixture
    def bronze(self, settings, table_at):
        bronze = table_at(settings.locate("bronze"))
        for hour in range(5):
            bronze.append().date(hour, NOON + timedelta(hours=hour))
        return bronze

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ({"first_version": 2}, (2, 4)),
            ({"last_version": 2}, (0, 2)),
            ({"first_version": 1, "last_version": 3}, (1, 3)),
            ({"since": "2026-01-01T13:00:00Z"}, (1, 4)),
            ({"since": "2026-01-01T12:30:00Z", "until": "2026-01-01T15:00:00Z"}, (1, 2)),
        ],
    )
    @pytest.mark.usefixtures("bronze")
    def test_versions_are_chosen(self, find, given, expected):
        found = find(spec("silver", DELTA, UPSERT), mode="merge", **given)
        assert found == DeltaRange(*expected)

    def test_versions_that_are_gone_are_told_with_what_is_left(self, bronze, refuse):
        for version in (0, 1):
            (bronze.log / f"{version:020}.json").unlink()
        silver = spec("silver", DELTA, UPSERT)
        told = refuse(silver, mode="merge", first_version=0, last_version=9)
        assert "has versions 2 to 4, and 0 is gone; begin at 2" in told
        assert "the newest version" in told

    def test_the_log_tells_how_many_rows_there_are(self, bronze, settings):
        assert bronze
        silver = spec("silver", DELTA, UPSERT)
        asked = {"pipeline": "silver", "mode": "merge", "first_version": 1}
        request, pipeline = parse_request(asked, [silver])
        assert Survey(request, pipeline, settings).find() == Found(DeltaRange(1, 4), rows=12)

    def test_versions_that_were_vacuumed_are_told_with_what_is_left(self, bronze, refuse):
        actions = map(json.loads, (bronze.log / f"{1:020}.json").read_text().splitlines())
        (path,) = (action["add"]["path"] for action in actions if "add" in action)
        (bronze.path / path).unlink()
        silver = spec("silver", DELTA, UPSERT)
        told = refuse(silver, mode="merge", first_version=0, last_version=3)
        assert "the files of versions 1 of" in told
        assert "versions 2 to 3 are left of it" in told
        assert "its end is gone too" in refuse(silver, mode="merge", last_version=1)

    @pytest.mark.usefixtures("bronze")
    def test_steps_that_remember_are_refused_before_anything_else(self, checkpoint_of, refuse):
        checkpoint_of("silver").batches(1).put("state/0/_metadata/metadata", b"v1")
        silver = spec("silver", DELTA, UPSERT)
        assert "remember rows" in refuse(silver, mode="merge", first_version=0)


@pytest.mark.kafka
class TestKafka:
    @pytest.fixture
    def topic(self, kafka_default):
        topic = kafka_default.create(partitions=2)
        kafka_default.produce(topic, [b"x"] * 10, partition=0)
        kafka_default.produce(topic, [b"y"] * 5, partition=1)
        return topic

    @pytest.fixture
    def events(self, topic, checkpoint_of):
        checkpoint_of("events").batch(0, {topic: {"0": 10, "1": 5}})
        return spec("events", KAFKA | {"topics": [topic]})

    def test_offsets_are_chosen(self, topic, events, find):
        found = find(events, offsets={topic: {"0": [2, 7]}})
        assert found == KafkaRange({topic: {"0": (2, 7)}})

    def test_times_are_chosen(self, topic, events, find):
        whole = find(events, since="2020-01-01T00:00:00Z")
        assert whole == KafkaRange({topic: {"0": (0, 10), "1": (0, 5)}})

    def test_offsets_that_live_runs_have_yet_to_read_are_told(
        self, topic, events, refuse, kafka_default
    ):
        kafka_default.produce(topic, [b"x"] * 3, partition=1)
        told = refuse(events, since="2020-01-01T00:00:00Z")
        assert f"have not committed {topic}-1 from 5 on yet" in told

    def test_what_is_not_there_is_told(self, topic, events, refuse, kafka_default):
        kafka_default.expire(topic, 4)
        asked = {topic: {"0": [2, 7], "1": [3, 9], "7": [0, 1]}, "other": {"0": [0, 1]}}
        told = refuse(events, offsets=asked)
        assert f"{topic}-0 begins at 2, which has expired; 4 to 10 are left of it" in told
        assert f"{topic}-1 ends at 5, before 9" in told
        assert f"{topic}-7 is not read by the pipeline" in told
        assert "other-0 is not read by the pipeline" in told
