import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from tidegate.core.spec.base import format_duration

HOSTILE = [
    "../x",
    "a/b",
    "a b",
    "a'b",
    'a"b',
    "a`b",
    "a;b",
    "a-b",
    "a.b",
    "$(touch x)",
    "a | rm -rf /",
    "x; DROP TABLE y",
    "a\nb",
    "a\0b",
    "é",
    "1a",
    "",
]
NAME_PLACES = ["name", "after[0]", "tables", "sinks[0].name"]


@pytest.fixture
def put_name(write):
    """Write a spec that has a name, given as it is, in one place."""

    def put(place, name):
        value = json.dumps(name)  # YAML's double quotes know all that JSON's do
        return {
            "name": write(name=value),
            "after[0]": write(f"after: [{value}]"),
            "tables": write(f"tables: {{{value}: {{type: delta, table: x}}}}"),
            "sinks[0].name": write(sinks=f"[{{type: delta, table: out, name: {value}}}]"),
        }[place]

    return put


@pytest.mark.parametrize("place", NAME_PLACES)
@pytest.mark.parametrize("value", [*HOSTILE, "Orders", "_orders", "a" * 101])
def test_a_name_that_is_no_identifier_is_refused(put_name, problem_of, place, value):
    problem = problem_of(put_name(place, value))
    assert problem.startswith(place)
    assert f"found {value!r}" in problem


@pytest.mark.parametrize("place", NAME_PLACES)
@pytest.mark.parametrize("value", ["a", "orders_2", "a" * 100])
def test_a_name_of_small_letters_digits_and_underscores_is_taken(put_name, parse, place, value):
    assert value in repr(parse(put_name(place, value)))


def test_a_table_with_a_wrong_name_is_told_by_its_name_alone(write, problem_of):
    problem = problem_of(write("tables: {Bad: {type: delta, table: x}}"))
    assert problem.startswith("tables.Bad (line 4): ")


@pytest.mark.parametrize("field", ["partition_by", "cluster_by"])
@pytest.mark.parametrize("value", ["a b", "a-b", "a;b", "a`b", "a.b", "1a", "$(x)", "../x"])
def test_a_column_that_is_no_identifier_is_refused(write_sink, problems_of, field, value):
    problems = problems_of(write_sink(f'table: out, {field}: [ok, "{value}"]'))
    assert problems[0].startswith(f"sinks[0].{field}[1] (line 3): ")
    assert problems[0].endswith(f"; found {value!r}")


PATH_PLACES = ["source.path", "source.archive_path", "source.table", "sinks[0].table", "tables"]


@pytest.fixture
def put_path(write, write_files, write_delta):
    """Write a spec that has a path, given as YAML, in one place."""

    def put(place, value):
        return {
            "source.path": write_files(path=value),
            "source.archive_path": write_files(clean_source="archive", archive_path=value),
            "source.table": write_delta(table=value),
            "sinks[0].table": write(sinks=f"[{{type: delta, table: {value}}}]"),
            "tables": write(f"tables: {{t: {{type: delta, table: {value}}}}}"),
        }[place]

    return put


@pytest.mark.parametrize("place", PATH_PLACES)
@pytest.mark.parametrize(
    ("value", "what"),
    [
        ('"../x"', "must not contain '..'"),
        ('"a/../../x"', "must not contain '..'"),
        ('"s3://bucket/../x"', "must not contain '..'"),
        ('".."', "must not contain '..'"),
        ('"a/*"', "must be a folder, not a pattern"),
        ('"a?"', "must be a folder, not a pattern"),
        ('"a/[b]"', "must be a folder, not a pattern"),
        ('"a/{b,c}"', "must be a folder, not a pattern"),
        ('"a\\nb"', "must not contain control characters"),
        ('"a\\0b"', "must not contain control characters"),
        ('""', "at least 1 character"),
        ('"  "', "at least 1 character"),
        ("5", "must be a text"),
    ],
)
def test_a_location_that_is_no_folder_is_refused(put_path, problem_of, place, value, what):
    problem = problem_of(put_path(place, value))
    assert problem.startswith(place)
    assert what in problem
    assert "; found " in problem


@pytest.mark.parametrize("value", ['"o\'x; DROP TABLE y"', "$(touch x)"])
@pytest.mark.parametrize("place", PATH_PLACES)
def test_a_location_with_sql_or_shell_text_is_refused(put_path, problem_of, place, value):
    assert problem_of(put_path(place, value)).startswith(place)


@pytest.mark.parametrize(
    "value", ["landing/orders", "/data/x", "s3a://bucket/x", "file:/x", "a-b/c=1/d.e", "a..b"]
)
def test_a_folder_is_taken_as_it_is_written(write_files, parse, value):
    assert parse(write_files(path=value)).source.path == value


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("5m", 300),
        ("12h", 43_200),
        ("7d", 604_800),
        ("5 m", 300),
        ("0s", 0),
        ("007d", 604_800),
    ],
)
def test_a_duration_is_a_number_and_a_unit(write, parse, text, seconds):
    pipeline = parse(write(f"retry_delay: {text}"))
    assert pipeline.retry_delay == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["5", "'5'", "-5m", "1.5h", "1w", "5M", "5m5s", "m", "soon", "'5m; rm'", "true", "PT5M"]
)
def test_a_duration_of_any_other_form_is_refused(write, problem_of, text):
    problem = problem_of(write(f"retry_delay: {text}"))
    assert problem.startswith(
        "retry_delay (line 4): must be a number and a unit, such as 30s, 5m, 12h or 7d; found "
    )


def test_a_duration_too_long_for_any_clock_is_refused(write, problem_of):
    assert problem_of(write("retry_delay: 99999999999999d")).startswith("retry_delay (line 4): ")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1, "1s"), (60, "1m"), (90, "90s"), (3600, "1h"), (86_400, "1d"), (604_800, "7d")],
)
def test_a_duration_is_spelled_in_its_largest_whole_unit(seconds, text):
    assert format_duration(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-02", datetime(2026, 1, 2, tzinfo=UTC)),
        ("'2026-01-02'", datetime(2026, 1, 2, tzinfo=UTC)),
        ("2026-01-02 03:04:05", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("'2026-01-02T03:04:05'", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        (
            "2026-01-02T03:04:05+02:00",
            datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=2))),
        ),
        (
            "'2026-01-02T03:04:05+02:00'",
            datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=2))),
        ),
    ],
)
def test_a_moment_without_a_zone_is_utc(write, parse, text, moment):
    start = parse(write(f"start_date: {text}")).start_date
    assert start == moment
    assert start.tzinfo is not None


@pytest.mark.parametrize(
    "text", ["yesterday", "'2026-02-30'", "true", "[2026-01-01]", "2026-02-30"]
)
def test_a_moment_that_is_none_is_refused(write, problem_of, text):
    assert problem_of(write(f"start_date: {text}")).startswith("start_date (line 4): ")


@pytest.mark.parametrize("text", ["2026", "20260101", "'2026'", "'-5'", "'1700000000.5'"])
def test_a_bare_number_is_no_moment(write, problem_of, text):
    assert problem_of(write(f"start_date: {text}")).startswith("start_date (line 4): ")


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("true", "true"),
        ("false", "false"),
        ("5", "5"),
        ("1.5", "1.5"),
        ("on", "on"),
        ("yes", "yes"),
        ("text", "text"),
    ],
)
def test_an_option_is_kept_as_the_text_that_spark_wants(write, parse, written, kept):
    assert parse(write(f"spark: {{spark.x: {written}}}")).spark == {"spark.x": kept}


@pytest.mark.parametrize("value", ["", "[a]", "{a: b}"])
def test_an_option_that_is_no_text_is_refused(write, problem_of, value):
    assert problem_of(write(f"spark: {{spark.x: {value}}}")).startswith("spark.spark.x (line 4): ")


SECRETS = [
    "password",
    "ssl.keystore.password",
    "spark.my.PASSWD",
    "client_secret",
    "fs.s3a.secret.key",
    "fs.s3a.access.key",
    "accessKey",
    "api_key",
    "apikey",
    "private-key",
    "kafka.sasl.jaas.config",
    "my.credential",
    "fs.azure.account.key.acme.dfs.core.windows.net",
    "fs.s3a.session.token",
]


@pytest.mark.parametrize("key", SECRETS)
@pytest.mark.parametrize("place", ["spark", "source.options", "tables.t.options"])
def test_an_option_that_would_hold_a_secret_is_refused_unseen(
    write, write_files, problem_of, place, key
):
    options = f"{{ok: fine, {key}: hunter2}}"
    text = {
        "spark": lambda: write(f"spark: {options}"),
        "source.options": lambda: write_files(options=options),
        "tables.t.options": lambda: write(
            "tables:",
            f"  t: {{type: files, path: x, format: csv, schema: id long, options: {options}}}",
        ),
    }[place]()
    problem = problem_of(text)
    assert problem.startswith(f"{place} (line ")
    assert f"{key} would hold a secret" in problem
    assert "Airflow connection" in problem
    assert "hunter2" not in problem


@pytest.mark.parametrize(
    "key",
    [
        "spark.sql.shuffle.partitions",
        "header",
        "spark.hadoop.fs.s3a.endpoint",
        "spark.hadoop.fs.s3a.aws.credentials.provider",
    ],
)
def test_an_option_that_holds_no_secret_is_taken(write, parse, key):
    assert parse(write(f"spark: {{{key}: x}}")).spark == {key: "x"}


def test_all_secrets_of_a_place_are_named_at_once(write, problem_of):
    problem = problem_of(write("spark: {b.password: x, ok: y, a.secret: z}"))
    assert "a.secret, b.password would hold a secret" in problem


@pytest.mark.parametrize("field", ["retries", "max_files_per_trigger"])
@pytest.mark.parametrize("value", ["true", "1.5", "many", "''", "[1]", ".inf", ".nan", "-1"])
def test_a_count_that_is_none_is_refused(write, write_files, problem_of, field, value):
    text = (
        write(f"retries: {value}")
        if field == "retries"
        else write_files(max_files_per_trigger=value)
    )
    assert f"{field} (line " in problem_of(text)


@pytest.mark.parametrize(
    ("value", "count"), [("100_000", 100_000), ("'7'", 7), ("0x10", 16), ("010", 10), ("1e3", 1000)]
)
def test_a_count_is_read_as_yaml_writes_numbers(write_files, parse, value, count):
    pipeline = parse(write_files(max_files_per_trigger=value))
    assert pipeline.source.max_files_per_trigger == count
