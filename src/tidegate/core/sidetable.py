"""Tables inside the folder of another one, which they serve.

Their names begin with an underscore: Delta's VACUUM of the table around them passes over those.
"""

DELETED_ROWS = "_tidegate_deleted"
"""Keys and sequences of the rows that said that their key is gone."""

ALL_ROWS = "_tidegate_rows"
"""All rows that ever came, where the table shows only some of them."""

SIDE_TABLES = (DELETED_ROWS, ALL_ROWS)
