"""Text that must not be given to Spark's parsers, since they stop the run, or take a broken value for whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DecimalType, StructType

from tidegate.spark.columns import quote

Parse = Callable[[Column, str], Column]
"""Parses text by a schema."""

_UNFINISHED = "a quote in it is not closed"
_ABSURD = "a number in it has an exponent that no decimal can have"
_MOST_COLUMNS = {"maxcolumns": "100000"}  # Spark fails where there are more than it was told
_EXPONENT = r"[0-9.][eE][+-]?[0-9]{5,}"


def complete_options(options: Mapping[str, str]) -> dict[str, str]:
    """Add to the options of CSV how many columns a line may have, where they do not say."""
    return _MOST_COLUMNS | {name.lower(): value for name, value in options.items()}


def refuse_csv(text: Column, options: Mapping[str, str]) -> Column:
    """Say why a line of CSV is not to be parsed; null where it is."""
    given = complete_options(options)
    # As Spark reads it: a tab may be spelled by two characters.
    separator = given.get("sep", given.get("delimiter", ",")).replace("\\t", "\t")
    most = int(given["maxcolumns"])
    reason = F.when(text == "", "the value is empty").when(
        # Shorter ones need not be counted. A separator within quotes counts, too: rather so than
        # that one value stops the run for ever.
        (F.octet_length(text) >= most) & (_count(text, separator) >= most),
        f"the value has {most:,} separators or more; the option maxColumns allows for them",
    )
    mark, escape = given.get("quote", '"'), given.get("escape", "\\")
    if not mark:
        return reason
    is_unfinished = text.contains(mark) & _is_unfinished(text, separator, mark, escape)
    return reason.when(is_unfinished, _UNFINISHED)


def refuse_exponents(text: Column, schema: StructType, parse: Parse, *, is_json: bool) -> Column:
    """Say that a number's exponent would keep Spark reckoning for minutes; null where none would.

    Spark writes such a number out before it looks whether the column can hold it.
    """
    if "decimal" not in schema.simpleString():
        return F.lit(None).cast("string")
    texts = parse(text, ", ".join(f"{quote(name)} string" for name in schema.names))
    decimals = [one.name for one in schema.fields if isinstance(one.dataType, DecimalType)]
    # A number of JSON that no double can hold is Infinity as text.
    absurd = [texts.getField(name).rlike(f"Infinity|{_EXPONENT}") for name in decimals]
    if is_json:
        # Without its strings, a document has exponents in numbers alone, however deep inside.
        absurd.insert(0, _strip(text, '"', "\\").rlike(_EXPONENT))
    found = reduce(or_, absurd) if absurd else F.lit(False)
    return F.when(text.rlike(_EXPONENT), F.when(found, _ABSURD))


def _count(text: Column, part: str) -> Column:
    rest = F.replace(text, F.lit(part), F.lit(""))
    return (F.octet_length(text) - F.octet_length(rest)) / len(part.encode())


def _is_unfinished(text: Column, separator: str, mark: str, escape: str) -> Column:
    """Whether a field begins with a quote, and nothing closes it."""
    return _strip(text, mark, escape).rlike(f"(^|{re.escape(separator)}){re.escape(mark)}")


def _strip(text: Column, mark: str, escape: str) -> Column:
    """Take out what is quoted; by two plain patterns, since Java's others fail on long texts."""
    if escape and escape != mark:
        text = F.regexp_replace(text, f"(?s){re.escape(escape)}.", "")
    plain = re.escape(mark)
    return F.regexp_replace(text, f"{plain}[^{plain}]*{plain}", "")
