import subprocess
import sys

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from upath import UPath

from tidegate.core.deltatable import DeltaRows, quote_text

READ = """
import sys
from upath import UPath
from tidegate.core.deltatable import DeltaRows
print(DeltaRows.open(UPath(sys.argv[1])).select().to_pylist())
"""


@pytest.fixture
def table(tmp_path):
    place = UPath(tmp_path / "table")
    write_deltalake(str(place), pa.table({"id": [1, 2, 3], "text": ["a", "it's", "\\n"]}))
    return place


def test_a_table_is_asked_by_sql(table):
    rows = DeltaRows.open(table)
    assert rows.version == 0
    assert rows.select("id", "id > 1", "ORDER BY id").to_pylist() == [
        {"id": 2},
        {"id": 3},
    ]


@pytest.mark.parametrize(("text", "number"), [("a", 1), ("it's", 2), ("\\n", 3)])
def test_a_text_is_spelled_so_that_it_is_found(table, text, number):
    found = DeltaRows.open(table).select("id", f"text = {quote_text(text)}")
    assert found.to_pylist() == [{"id": number}]


def test_no_table_has_no_rows(tmp_path):
    assert DeltaRows.open(UPath(tmp_path / "none")) is None


def test_an_opened_version_stays_the_same(table):
    rows = DeltaRows.open(table)
    write_deltalake(str(table), pa.table({"id": [4], "text": ["d"]}), mode="append")
    assert rows.select("count(*) AS n").to_pylist() == [{"n": 3}]


def test_a_process_that_ends_right_after_it_read_ends_well(table):
    # Readers that call back into Python from threads of their own abort every second one.
    for _ in range(8):
        command = [sys.executable, "-c", READ, str(table)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
