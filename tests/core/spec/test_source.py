from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from tidegate.core.spec.files import CleanSource, FileFormat, FilesSource, Malformed
from tidegate.core.spec.source import DeltaSource, RateSource

BOUND = "needs exactly one of max_files_per_trigger and max_bytes_per_trigger"
ARCHIVE = "clean_source archive and archive_path go together"


def test_a_files_source_from_yaml_equals_one_built_in_python(write_files, parse):
    text = write_files(
        format="csv",
        schema="id long, at timestamp",
        glob="'*.csv'",
        recursive="true",
        max_files_per_trigger=None,
        max_bytes_per_trigger="1_000",
        max_file_age="2h",
        clean_source="archive",
        archive_path="done",
        malformed="drop",
        provenance="false",
        options="{header: true}",
    )
    assert parse(text).source == FilesSource(
        type="files",
        path="landing",
        format=FileFormat.CSV,
        schema="id long, at timestamp",
        glob="*.csv",
        recursive=True,
        max_bytes_per_trigger=1000,
        max_file_age=timedelta(hours=2),
        clean_source=CleanSource.ARCHIVE,
        archive_path="done",
        malformed=Malformed.DROP,
        provenance=False,
        options={"header": "true"},
    )


def test_a_delta_source_from_yaml_equals_one_built_in_python(write_delta, parse):
    text = write_delta(
        starting_timestamp="2026-01-01",
        max_bytes_per_trigger="9",
        change_data_feed="true",
    )
    assert parse(text).source == DeltaSource(
        type="delta",
        table="bronze",
        starting_timestamp=datetime(2026, 1, 1, tzinfo=UTC),
        max_files_per_trigger=5,
        max_bytes_per_trigger=9,
        change_data_feed=True,
    )


def test_a_rate_source_from_yaml_equals_one_built_in_python(write, parse):
    assert parse(write()).source == RateSource(type="rate", rows_per_batch=5)


def test_a_files_source_has_safe_defaults(write_files, parse):
    source = parse(write_files()).source
    assert source.max_file_age == timedelta(days=7)
    assert (source.clean_source, source.malformed) == (CleanSource.OFF, Malformed.KEEP)
    assert (source.recursive, source.provenance) == (False, True)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"max_files_per_trigger": None}, BOUND),
        ({"max_bytes_per_trigger": "1"}, BOUND),
        ({"schema": None}, "format json needs a schema, such as 'id long, at timestamp'"),
        (
            {"schema": None, "format": "parquet"},
            "format parquet needs a schema, such as 'id long, at timestamp'",
        ),
        ({"format": "text"}, "format text has a schema of its own, so schema must go"),
        ({"format": "binaryFile"}, "format binaryFile has a schema of its own, so schema must go"),
        ({"clean_source": "archive"}, ARCHIVE),
        ({"archive_path": "done"}, ARCHIVE),
        ({"archive_path": "done", "clean_source": "delete"}, ARCHIVE),
        (
            {"format": "parquet", "malformed": "drop"},
            "malformed is only for formats json and csv",
        ),
        (
            {"options": "{mode: FAILFAST, PathGlobFilter: x, ok: y}"},
            "options must not hold PathGlobFilter, mode; the spec has fields for it",
        ),
    ],
)
def test_fields_of_a_files_source_that_conflict_are_told(write_files, problem_of, fields, problem):
    assert problem_of(write_files(**fields)) == f"source (line 2): {problem}"


GLOB = "takes * ? [abc] [^abc] and {a,b}, each bracket closed, and no backslash"


@pytest.mark.parametrize(
    "glob",
    [
        "*.json",
        "a?c",
        "[a-c]x",
        "[^a]*",
        "[!a]*",
        "{a,b}.{json,csv}",
        "a{,b}",
        "a b",
        "é^|($)",
        "a,b",
    ],
)
def test_a_glob_of_hadoop_s_is_taken(write_files, parse, glob):
    assert parse(write_files(glob=f"'{glob}'")).source.glob == glob


@pytest.mark.parametrize(
    ("glob", "problem"),
    [
        ("2026/*.json", "must match file names, so it has no '/'; recursive reads nested folders"),
        ("a\\*b", GLOB),
        ("a\\", GLOB),
        ("[\\]]", GLOB),
        ("[", GLOB),
        ("[a", GLOB),
        ("a]", GLOB),
        ("[]", GLOB),
        ("[[a]", GLOB),
        ("{a", GLOB),
        ("a}", GLOB),
        ("{a,b", GLOB),
        ("{a,[b}]", GLOB),
    ],
)
def test_a_glob_that_hadoop_might_read_in_another_way_is_refused(
    write_files, problem_of, glob, problem
):
    told = problem_of(write_files(glob=f"'{glob}'"))
    assert told == f"source.glob (line 8): {problem}; found {glob!r}"


@pytest.mark.parametrize("glob", ["[^]", "[!]", "[z-a]"])
def test_a_glob_that_hadoop_cannot_read_is_refused(write_files, problem_of, glob):
    assert problem_of(write_files(glob=f"'{glob}'")).startswith("source.glob (line 8): ")


@pytest.mark.parametrize("glob", ["a[?]b", "a[*]b", "[^*]"])
def test_a_glob_with_a_wildcard_in_brackets_is_refused_since_to_hadoop_it_is_a_dot_too(
    write_files, problem_of, glob
):
    assert problem_of(write_files(glob=f"'{glob}'")).startswith("source.glob (line 8): ")


@pytest.mark.parametrize("archive", ["landing", "landing/done", "landing/", "landing//done"])
def test_an_archive_inside_the_landing_zone_is_refused(write_files, problem_of, archive):
    problem = problem_of(write_files(clean_source="archive", archive_path=archive))
    assert problem.startswith("source (line 2): archive_path must not be inside path")


def test_an_archive_inside_the_landing_zone_is_refused_however_it_is_spelled(
    write_files, problem_of
):
    problem = problem_of(write_files(clean_source="archive", archive_path="./landing/done"))
    assert problem.startswith("source (line 2): archive_path must not be inside path")


@pytest.mark.parametrize("archive", ["landing_done", "done", "/landing/x"])
def test_an_archive_beside_the_landing_zone_is_taken(write_files, parse, archive):
    text = write_files(clean_source="archive", archive_path=archive)
    assert parse(text).source.archive_path == archive


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            {"max_files_per_trigger": None},
            "needs max_files_per_trigger or max_bytes_per_trigger",
        ),
        (
            {"starting_version": "0", "starting_timestamp": "2026-01-01"},
            "takes starting_version or starting_timestamp, not both",
        ),
        (
            {"change_data_feed": "true", "skip_change_commits": "true"},
            "change_data_feed reads changes, so skip_change_commits must go",
        ),
    ],
)
def test_fields_of_a_delta_source_that_conflict_are_told(write_delta, problem_of, fields, problem):
    assert problem_of(write_delta(**fields)) == f"source (line 2): {problem}"


def test_a_change_feed_that_is_off_in_words_conflicts_with_nothing(write_delta, parse):
    source = parse(write_delta(change_data_feed="off", skip_change_commits="on")).source
    assert (source.change_data_feed, source.skip_change_commits) == (False, True)


@pytest.mark.parametrize("bound", ["max_files_per_trigger", "max_bytes_per_trigger"])
@pytest.mark.parametrize("kind", ["files", "delta"])
def test_a_bound_that_is_left_empty_is_no_bound(write_files, write_delta, problem_of, kind, bound):
    fields = {"max_files_per_trigger": None} | {bound: ""}
    text = write_files(**fields) if kind == "files" else write_delta(**fields)
    assert "max_files_per_trigger" in problem_of(text)


def test_an_empty_field_beside_a_bound_changes_nothing(write_files, parse):
    assert parse(write_files(max_bytes_per_trigger="null")).source.max_files_per_trigger == 5


def test_a_schema_that_is_left_empty_is_missing(write_files, problem_of):
    assert "format json needs a schema" in problem_of(write_files(schema=""))


def test_an_archive_path_that_is_left_empty_is_missing(write_files, problem_of):
    assert ARCHIVE in problem_of(write_files(clean_source="archive", archive_path=""))


@pytest.mark.parametrize("file_format", ["jsno", "JSON"])
def test_a_format_that_is_misspelt_is_the_only_mistake(write_files, problem_of, file_format):
    problem = problem_of(write_files(format=file_format, malformed="keep"))
    assert problem.startswith("source.format (line 5): ")
    assert problem.endswith(f"; found {file_format!r}")
    for known in FileFormat:
        assert f"'{known}'" in problem


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("clean_source", "no", ["'off'", "'archive'", "'delete'"]),
        ("malformed", "skip", ["'keep'", "'drop'", "'fail'"]),
    ],
)
def test_a_choice_names_what_is_allowed(write_files, problem_of, field, value, allowed):
    problem = problem_of(write_files(**{field: value}))
    assert problem.startswith(f"source.{field} (line 8): ")
    assert problem.endswith(f"; found {value!r}")
    assert all(choice in problem for choice in allowed)


def test_off_without_quotes_is_the_word_and_not_false(write_files, parse):
    assert parse(write_files(clean_source="off")).source.clean_source is CleanSource.OFF


@pytest.mark.parametrize("file_format", ["text", "binaryFile"])
def test_a_format_with_its_own_schema_needs_none(write_files, parse, file_format):
    assert parse(write_files(format=file_format, schema=None)).source.file_schema is None


@pytest.mark.parametrize("column", ["_corrupt_record string", "_Corrupt_Record string"])
def test_a_schema_cannot_name_the_column_that_keep_adds(write_files, problem_of, column):
    assert "_corrupt_record" in problem_of(write_files(schema=f"id long, {column}")).lower()


@pytest.mark.parametrize("column", ["_file string", "_file_modified timestamp"])
def test_a_schema_cannot_name_the_columns_that_provenance_adds(write_files, problem_of, column):
    name = column.partition(" ")[0]
    assert problem_of(write_files(schema=f"id long, {column}")) == (
        f"source (line 2): schema must not name {name}: tidegate adds it"
    )


def test_a_schema_may_name_them_where_provenance_is_off(write_files, parse):
    schema = "id long, _file string, _file_modified timestamp"
    assert parse(write_files(schema=schema, provenance="false")).source.file_schema == schema


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("{}", "type is required and missing; allowed are delta, files, kafka, rate, spark"),
        (
            "{table: x}",
            "type is required and missing; allowed are delta, files, kafka, rate, spark",
        ),
        ("{type: kinesis}", "type is 'kinesis'; allowed are delta, files, kafka, rate, spark"),
        ("{type: Files}", "type is 'Files'; allowed are delta, files, kafka, rate, spark"),
        ("{type: }", "type is None; allowed are delta, files, kafka, rate, spark"),
        ("{type: [files]}", "type is ['files']; allowed are delta, files, kafka, rate, spark"),
    ],
)
def test_a_source_of_no_known_type_names_the_types(write, problem_of, source, problem):
    assert problem_of(write(source=f"source: {source}")) == f"source (line 2): {problem}"


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ("{type: files, max_files_per_trigger: 1}", ["path", "format"]),
        ("{type: delta, max_files_per_trigger: 1}", ["table"]),
        ("{type: rate}", ["rows_per_batch"]),
    ],
)
def test_every_field_that_is_missing_is_told(write, problems_of, source, missing):
    assert problems_of(write(source=f"source: {source}")) == [
        f"source.{field} (line 2): is required and missing" for field in missing
    ]


@pytest.mark.parametrize(
    "build",
    [
        lambda: FilesSource(type="files", path="x", format="json", schema="id long"),
        lambda: DeltaSource(type="delta", table="x"),
        lambda: RateSource(type="rate", rows_per_batch=0),
        lambda: DeltaSource(type="delta", table="x", max_files_per_trigger=None),
    ],
    ids=["files", "delta", "rate", "delta with a bound of none"],
)
def test_a_source_built_in_python_is_checked_alike(build):
    with pytest.raises(ValidationError):
        build()


@pytest.mark.parametrize(
    "build",
    [
        lambda: DeltaSource(type="delta", table="x", max_files_per_trigger=1),
        lambda: RateSource(type="rate", rows_per_batch=1),
    ],
    ids=["delta", "rate"],
)
def test_a_source_of_plain_values_is_hashable(build):
    assert hash(build()) == hash(build())


def test_a_source_with_options_is_not_hashable():
    source = FilesSource(type="files", path="x", format="text", max_files_per_trigger=1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(source)


def test_a_source_is_frozen():
    source = RateSource(type="rate", rows_per_batch=1)
    with pytest.raises(ValidationError, match="frozen"):
        source.rows_per_batch = 2


@pytest.mark.parametrize("known", ["kafka", "delta"])
def test_a_format_that_has_a_type_of_its_own_is_pointed_to_it(write, problem_of, known):
    assert f"format {known} has a type of its own" in problem_of(
        write(source=f"source: {{type: spark, format: {known}}}")
    )


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ("format: csv, schema: id long, on_unknown: drop", "on_unknown is only for format json"),
        (
            "format: json, schema: id long, on_unknown: rescue, options: {multiLine: true}",
            "on_unknown needs a record a line, in UTF-8, so multiLine of options must go",
        ),
        (
            "format: json, on_unknown: rescue, schema: _rescued long",
            "schema must not name _rescued: tidegate adds it",
        ),
    ],
)
def test_unknown_fields_are_told_apart_only_in_lines_of_json(write, problem_of, fields, problem):
    source = f"source: {{type: files, path: x, max_files_per_trigger: 1, {fields}}}"
    assert problem_of(write(source=source)).endswith(problem)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"format": "json"}, "drop"),
        ({"format": "json", "on_unknown": "rescue"}, "rescue"),
        ({"format": "csv"}, "drop"),
        ({"format": "json", "on_unknown": "evolve"}, "evolve"),
        ({"format": "json", "options": {"multiLine": True}}, "drop"),
        ({"format": "json", "options": {"encoding": "UTF-16"}}, "drop"),
    ],
)
def test_unknown_fields_are_forgotten_unless_the_spec_says_otherwise(fields, expected):
    source = FilesSource(
        type="files", path="x", schema="id long", max_files_per_trigger=1, **fields
    )
    assert source.unknown_fields == expected
