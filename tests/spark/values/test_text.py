"""Values of text that Spark's parsers would fail on, take minutes for, or take for whole."""

import time

import pytest

from tidegate.core.spec.kafka import Decoding
from tidegate.spark.values.decoded import MISFIT
from tidegate.spark.values.text import decode_text

COLUMNS = "the value has 100,000 separators or more; the option maxColumns allows for them"
QUOTE = "a quote in it is not closed"
ABSURD = "a number in it has an exponent that no decimal can have"


@pytest.fixture
def decode(spark):
    """Decode values, and tell each row, or why there is none."""

    def decode(values, **decoding):
        records = spark.createDataFrame([(value.encode(),) for value in values], "value binary")
        decoded = decode_text(records, Decoding.model_validate(decoding))
        rows = decoded.records.select(decoded.reason.alias("reason"), *decoded.columns).collect()
        return [row.reason or tuple(row)[1:] for row in rows]

    return decode


CSV = {
    "": "the value is empty",
    "1,": (1, None),
    '1,"a': QUOTE,
    '1,"a,b': QUOTE,
    '1,"a\nb': QUOTE,
    '"1,a': QUOTE,
    '1,"a\\"': QUOTE,
    '1,"a""': QUOTE,
    '1,"a,b"': (1, "a,b"),
    '1,"a\\"b,c"': (1, 'a"b,c'),
    '1,5"': (1, '5"'),
    '"1",""': (1, None),
    "1,a\n2,b": MISFIT,
    "1," + "x," * 100_000: COLUMNS,
    "1," + "x," * 30_000: MISFIT,
    '1,"' + "x," * 30_000 + '"': (1, "x," * 30_000),
}


def test_lines_of_csv_are_whole_or_told(decode):
    found = decode(CSV, format="csv", schema="id long, name string")
    assert dict(zip(CSV, found, strict=True)) == CSV


def test_separator_and_quote_may_be_others(decode):
    values = ["1\t'a", "1\t'a\tb'", '1\t"a']
    options = {"sep": "\\t", "quote": "'", "MaxColumns": "3"}
    found = decode(
        [*values, "1\t2\t3\t4"], format="csv", schema="id long, name string", options=options
    )
    assert found[:3] == [QUOTE, (1, "a\tb"), (1, '"a')]
    assert found[3].startswith("the value has 3 separators or more")
    unquoted = decode(['1,"a'], format="csv", schema="id long, name string", options={"quote": ""})
    assert unquoted == [(1, '"a')]


JSON = {
    '{"d": 1e20000000}': ABSURD,
    '{"d": -1.5E+20000000}': ABSURD,
    '{"d": 1e-20000000}': ABSURD,
    '{"d": "1e20000000"}': ABSURD,
    '{"deep": [{"d": 1e20000000}]}': ABSURD,
    '{"name": "1e20000000", "d": 1.5e1}': ("1e20000000", 15, None),
    '{"name": "\\\\\\": 1e20000000", "d": 1}': ('\\": 1e20000000', 1, None),
    '{"name": "0e123456", "deep": [{"d": 2}]}': ("0e123456", None, [(2,)]),
}


def test_exponents_that_no_decimal_can_have_are_told_at_once(decode):
    begun = time.monotonic()
    schema = "name string, d decimal(10,2), deep array<struct<d: decimal(5,1)>>"
    found = decode(JSON, format="json", schema=schema, on_unknown="drop")
    assert dict(zip(JSON, found, strict=True)) == JSON
    lines = ["1e20000000,x", "2,1e20000000", '"1e20000000",x']
    found = decode(lines, format="csv", schema="d decimal(10,2), name string")
    assert found == [ABSURD, (2, "1e20000000"), ABSURD]
    assert time.monotonic() - begun < 60  # a single one takes as long where it is parsed
