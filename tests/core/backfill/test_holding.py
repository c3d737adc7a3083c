"""How many rows of a range a table has, by each kind of source."""

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.conftest import to_spark_url
from tests.core.backfill.test_request import DELTA, FILES, KAFKA, spec
from tidegate.core.backfill.holding import count_held
from tidegate.core.backfill.range import DeltaRange, FilesRange, KafkaRange
from tidegate.core.deltalog import DeltaLog


@pytest.fixture
def count(settings):
    def count(source, part):
        pipeline = spec("p", source).require()
        (sink,) = pipeline.delta_sinks
        return count_held(pipeline, settings, sink, part)

    return count


@pytest.fixture
def write(settings):
    def write(table, **columns):
        write_deltalake(str(settings.locate(table)), pa.table(columns), mode="append")

    return write


def test_of_offsets(count, write):
    part = KafkaRange({"orders": {"0": (5, 7), "1": (0, 1)}})
    assert count(KAFKA, part) == 0  # there is no table
    write(
        "out/p",
        _topic=["orders"] * 5 + ["other"],
        _partition=[0, 0, 0, 1, 1, 0],
        _offset=[4, 5, 6, 0, 1, 5],
    )
    assert count(KAFKA, part) == 3


def test_of_files_whatever_their_names(count, write):
    names = ["/landing/it's 1.json", "/landing/50%.json", "/landing/ü.json"]
    write("out/p", _file=[to_spark_url(name) for name in [*names, *names[:1]]] + [None])
    assert count(FILES, FilesRange(tuple(names[:2]))) == 3


def test_of_versions(count, write, settings):
    table = DELTA["table"]
    for number in range(3):
        write(table, id=[number])
    log = DeltaLog(settings.locate(table))
    files = [log.read_change(version).added[0] for version in range(3)]
    root = settings.locate(table)
    write("out/p", _file=[to_spark_url(f"{root}/{file}") for file in (*files, files[1])])
    assert count(DELTA, DeltaRange(1, 2)) == 3
