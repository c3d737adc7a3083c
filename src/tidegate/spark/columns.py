"""Columns by their names, in whatever case a spec spells them."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

# Down to the microsecond: by default, JSON has times cut off at the millisecond.
_JSON = dict.fromkeys(("timestampFormat", "timestampNTZFormat"), "yyyy-MM-dd'T'HH:mm:ss.SSSSSS")


def quote(name: str) -> str:
    """Spell a column's name so that SQL takes it for one, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def refer(names: Iterable[str]) -> list[Column]:
    """Refer to columns by their names."""
    return [F.col(quote(name)) for name in names]


def list_absent(names: Iterable[str], present: Iterable[str]) -> list[str]:
    """List the names that are not among others."""
    known = {name.lower() for name in present}
    return [name for name in names if name.lower() not in known]


def pick_fields(schema: StructType, names: Iterable[str]) -> StructType:
    """Pick the fields of a schema that have one of some names."""
    wanted = {name.lower() for name in names}
    return StructType([field for field in schema.fields if field.name.lower() in wanted])


def choose_columns(rows: DataFrame, names: tuple[str, ...]) -> DataFrame:
    """Keep the columns of some names; all where none is named."""
    return rows.select(*refer(names)) if names else rows


def spell_content(names: Iterable[str]) -> Column:
    """Spell what is in some columns as one text, the same for the same content.

    The order of the columns does not matter, nor does one more that is null.
    """
    return F.to_json(F.struct(*refer(sorted(names))), _JSON)


def is_comparable(kind: DataType) -> bool:
    """Whether Spark can put values of a type in order."""
    match kind:
        case MapType() | VariantType():
            return False
        case ArrayType():
            return is_comparable(kind.elementType)
        case StructType():
            return all(is_comparable(field.dataType) for field in kind.fields)
    return True
