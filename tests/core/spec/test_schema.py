import pytest

from tidegate.core.spec.schema import parse_columns

TYPES = (
    "array, bigint, binary, boolean, byte, char, character, date, dec, decimal, double, float, "
    "int, integer, interval, long, map, numeric, real, short, smallint, string, struct, "
    "timestamp, timestamp_ltz, timestamp_ntz, tinyint, varchar, variant"
)
EXAMPLE = "write it as 'id long, at timestamp'"


@pytest.mark.parametrize(
    ("ddl", "columns"),
    [
        ("id long", ("id",)),
        ("id long, at timestamp", ("id", "at")),
        ("id LONG,\n  At TimeStamp", ("id", "At")),
        ("a byte, b short, c int, d long, e float, f double", tuple("abcdef")),
        ("a tinyint, b smallint, c integer, d bigint, e real", tuple("abcde")),
        ("a string, b binary, c boolean, d date", tuple("abcd")),
        ("a timestamp, b timestamp_ntz, c timestamp_ltz", tuple("abc")),
        ("a decimal, b decimal(10), c decimal(10,2), d decimal(38, 38)", tuple("abcd")),
        ("a char(3), b varchar(5), c variant, d interval", tuple("abcd")),
        ("a array<int>, m map<string, long>, s struct<x: int, y: string>", tuple("ams")),
        ("s struct<a: array<struct<b: map<string, decimal(10,2)>>>>", ("s",)),
        ("id long NOT NULL, at date COMMENT 'when'", ("id", "at")),
        ("`weird name` int, `select` string", ("weird name", "select")),
        ("a dec(5), b numeric(5, 1), c character(3)", tuple("abc")),
        ("a array < int >, b varchar (5), c decimal ( 5 , 2 )", tuple("abc")),
        ("1a int, _ int, _b int", ("1a", "_", "_b")),
        ("select int, from int, not int, comment string, interval interval", None),
        ("struct struct<struct: int>, array array<int>, timestamp timestamp", None),
    ],
)
def test_a_schema_that_spark_reads_is_taken(ddl, columns):
    words = tuple(part.split()[0] for part in ddl.split(", "))
    assert parse_columns(ddl) == (columns or words)


# What Spark 4.2's own parser says to these was looked up by StructType.fromDDL.


@pytest.mark.parametrize(
    "ddl",
    [
        "d interval",
        "d interval, e int",
        "d interval day",
        "d interval day to second",
        "d INTERVAL Year TO Month, e int",
        "d interval day to second NOT NULL COMMENT 'x'",
        "s struct<a: interval, b: interval day to second>",
        "a array<interval>",
        "m map<string, interval hour to minute>",
    ],
)
def test_an_interval_has_its_units_or_none(ddl):
    assert parse_columns(ddl)[0] == ddl[0]


@pytest.mark.parametrize("ddl", ["d interval not null", "d interval comment 'x', e int"])
def test_an_interval_without_units_may_be_followed_by_more(ddl):
    assert parse_columns(ddl)[0] == "d"


@pytest.mark.parametrize(
    "ddl",
    ["d interval week", "d interval to second", "d interval day to", "d interval day to week"],
)
def test_an_interval_of_other_units_is_refused(ddl):
    with pytest.raises(ValueError, match="column 'd': write 'interval day to second' or the like"):
        parse_columns(ddl)


@pytest.mark.parametrize("units", ["year to day", "second to day", "day to day", "month to year"])
def test_an_interval_between_units_that_do_not_go_together_is_refused(units):
    with pytest.raises(ValueError, match="column 'd'"):
        parse_columns(f"d interval {units}")


@pytest.mark.parametrize(
    "ddl",
    [
        "s struct<a: int NOT NULL COMMENT 'x', b: struct<c: string NOT NULL>> NOT NULL COMMENT 'y'",
        "s struct<a int not null, b: array<struct<c: int comment 'x'>>>",
        "s struct<`a b`: int COMMENT 'x>y, z'>",
        "s struct<>",
        "s array<int> NOT NULL",
        "s map<string, int> COMMENT 'x'",
    ],
)
def test_a_field_within_a_column_may_say_what_a_column_may(ddl):
    assert parse_columns(f"{ddl}, t int") == ("s", "t")


@pytest.mark.parametrize(
    "ddl",
    [
        "s struct<a: int,>",
        "s struct<a: int",
        "s struct<a.b: int>",
        "s struct<a: int DEFAULT 5>",
        "s array<>",
        "s array<int NOT NULL>",
        "s map<,>",
        "s map<string, int COMMENT 'x'>",
        "s int COMMENT 'x' NOT NULL",
        "s int NOT NULL NOT NULL",
        "s int NULL",
        "s int NOT",
    ],
)
def test_what_may_follow_a_type_is_told_by_its_place(ddl):
    with pytest.raises(ValueError):
        parse_columns(ddl)


@pytest.mark.parametrize(
    "comment",
    [
        "''",
        "'when, in UTC'",
        "'a > b < c (d)'",
        "'say \"hi\"'",
        r"'it\'s'",
        r"'ends with \\'",
        "'-- no comment'",
        "'two\nlines'",
        "'`x`'",
    ],
)
def test_a_comment_may_hold_anything_but_its_own_quote(comment):
    assert parse_columns(f"a int COMMENT {comment}, b date") == ("a", "b")


def test_a_quote_in_a_comment_may_be_doubled():
    assert parse_columns("a int COMMENT 'it''s', b date") == ("a", "b")


@pytest.mark.parametrize("comment", ["", "x", "5", "`x`", "'", r"'x\'", "'it's'"])
def test_a_comment_that_is_no_text_in_quotes_is_refused(comment):
    with pytest.raises(ValueError):
        parse_columns(f"a int COMMENT {comment}")


def test_a_name_in_backticks_may_hold_one_doubled():
    assert parse_columns("`a``b` int") == ("a`b",)


@pytest.mark.parametrize("name", ["é", "日本", "3d", "10l", "1e3"])
def test_a_name_that_spark_takes_only_in_backticks_is_refused_without(name):
    assert parse_columns(f"`{name}` int") == (name,)
    with pytest.raises(ValueError):
        parse_columns(f"{name} int")


@pytest.mark.parametrize(
    ("ddl", "problem"),
    [
        ("a decimal(39,2)", "column 'a' is decimal(39,2); it may have up to 38 digits"),
        ("a decimal(39)", "column 'a' is decimal(39,0); it may have up to 38 digits"),
        ("s struct<b: decimal(2,10)>", "column 'b' is decimal(2,10); it may have up to 38 digits"),
        ("a decimal(99999999999)", "column 'a' needs a number, found '99999999999'"),
        ("a decimal(10,-2)", "does not parse near '-2)'"),
        ("a decimal()", "column 'a' needs a number, found ')'"),
        ("a decimal(5,)", "column 'a' needs a number, found ')'"),
        ("a decimal(5,1,1)", "needs ')' after the scale, found ','"),
        ("a char", "needs '(' after char of column 'a', found 'the end'"),
        ("a char(x)", "column 'a' needs a number, found 'x'"),
        ("m map<int>", "needs ',' after the key of column 'm', found '>'"),
        ("a array<int", "needs '>' after array of column 'a', found 'the end'"),
        ("s struct<x int y>", "needs '>' after the fields of column 's', found 'y'"),
        ("a int b int", f"does not parse near 'b'; {EXAMPLE}"),
        ("a int COMMENT x", "column 'a': COMMENT needs a text in single quotes"),
        ("a int,", f"needs a column's name, found 'the end'; {EXAMPLE}"),
        (" ", f"names no columns; {EXAMPLE}"),
    ],
)
def test_what_is_wrong_is_told_by_its_column(ddl, problem):
    with pytest.raises(ValueError) as raised:
        parse_columns(ddl)
    assert str(raised.value).startswith(problem)


@pytest.mark.parametrize("depth", [10, 100])
def test_a_type_may_be_nested(depth):
    assert parse_columns(f"a {'array<' * depth}int{'>' * depth}, b int") == ("a", "b")


@pytest.mark.parametrize("nesting", ["array<", "map<int,", "struct<a:"])
def test_a_type_that_is_nested_too_deeply_is_refused_and_no_crash(write_files, problem_of, nesting):
    ddl = f"a {nesting * 5000}int{'>' * 5000}"
    with pytest.raises(ValueError):
        parse_columns(ddl)
    assert problem_of(write_files(schema=f"'{ddl}'")).startswith("source.schema (line 6): ")


@pytest.mark.parametrize(
    ("ddl", "problem"),
    [
        ("id", f"column 'id' has no type; {EXAMPLE}"),
        ("id long, at", f"column 'at' has no type; {EXAMPLE}"),
        ("", f"names no columns; {EXAMPLE}"),
        ("-- a comment", f"does not parse near '-- a comment'; {EXAMPLE}"),
        ("id long, ID int", "names id more than once; Spark ignores case"),
        ("b int, a int, A int, B int", "names a, b more than once; Spark ignores case"),
        ("id json", f"column 'id' has type 'json'; the types are {TYPES}"),
        ("id nope", f"column 'id' has type 'nope'; the types are {TYPES}"),
        ("s struct<a: Nope>", f"column 'a' has type 'Nope'; the types are {TYPES}"),
        ("m map<string, nope>", f"column 'm' has type 'nope'; the types are {TYPES}"),
    ],
)
def test_a_schema_that_is_wrong_names_what_is_wrong(ddl, problem):
    with pytest.raises(ValueError) as raised:
        parse_columns(ddl)
    assert str(raised.value) == problem


@pytest.mark.parametrize(
    "ddl",
    [
        "a array<nope>",
        "s struct<a: nope>",
        "s struct<a>",
        "m map<string, array<nope>>",
        "id long id2 long",
        "id: long",
        "id 'long'",
        "a-b long",
        "id long;",
        "PRIMARY KEY (id)",
        "id long, CHECK (id > 0)",
        "LIKE other",
        "SELECT 1",
        "{'type': 'struct'}",
        "'",
        "/*",
        "\0",
        "id int unsigned",
        "id long, at timestamp)",
        "id long); DROP TABLE x",
        "id long); DROP TABLE x --",
        "id long) --",
    ],
)
def test_text_that_is_no_schema_is_refused(ddl):
    with pytest.raises(ValueError):
        parse_columns(ddl)


@pytest.mark.parametrize(
    "ddl",
    [
        "id long); DROP TABLE x; SELECT (1",
        "id long) USING delta PARTITIONED BY (id",
        "id long) AS SELECT (1",
        "id long) COMMENT ('x'",
    ],
)
def test_text_that_closes_the_bracket_and_opens_another_is_refused(ddl):
    with pytest.raises(ValueError):
        parse_columns(ddl)


@pytest.mark.parametrize("ddl", ["id long -- note", "id long -- note\n, at date"])
def test_a_line_comment_is_refused_since_it_would_swallow_columns_added_later(ddl):
    with pytest.raises(ValueError):
        parse_columns(ddl)


@pytest.mark.parametrize(
    "ddl", ["id text", "id bool", "id int8", "id int4", "id number", "id timestamptz"]
)
def test_a_type_of_another_database_is_refused(ddl):
    with pytest.raises(ValueError, match=f"the types are {TYPES}$"):
        parse_columns(ddl)


@pytest.mark.parametrize(
    ("ddl", "written"), [("id datetime", "datetime"), ("id uuid", "uuid"), ("id time", "time")]
)
def test_a_type_is_told_as_it_was_written(ddl, written):
    with pytest.raises(ValueError, match=f"'{written}'"):
        parse_columns(ddl)


@pytest.mark.parametrize(
    "ddl",
    [
        "a array",
        "m map<int>",
        "a int[]",
        "a varchar",
        "a char",
        "a decimal(39,2)",
        "a decimal(2,10)",
        "a string(5)",
        "a double precision",
    ],
)
def test_a_type_that_is_not_whole_is_refused_as_spark_does(ddl):
    with pytest.raises(ValueError):
        parse_columns(ddl)


@pytest.mark.parametrize("ddl", ["id long,", ",id long", "1 long", "a.b long", "'id' long"])
def test_a_column_that_spark_cannot_name_is_refused(ddl):
    with pytest.raises(ValueError):
        parse_columns(ddl)


@pytest.mark.parametrize(
    "ddl", ["id long DEFAULT 5", "id long PRIMARY KEY", "id long GENERATED ALWAYS AS (1)"]
)
def test_a_constraint_that_only_a_table_has_is_refused(ddl):
    with pytest.raises(ValueError):
        parse_columns(ddl)


@pytest.mark.parametrize("place", ["source.schema (line 6)", "tables.t.schema (line 4)"])
def test_a_wrong_schema_is_told_by_its_place(write, write_files, problem_of, place):
    text = (
        write_files(schema="id nope")
        if place.startswith("source")
        else write("tables: {t: {type: files, path: x, format: csv, schema: id nope}}")
    )
    problem = problem_of(text)
    told = f"column 'id' has type 'nope'; the types are {TYPES}"
    assert problem == f"{place}: {told}; found 'id nope'"
