"""Cells of a CSV file: text that a spreadsheet would run as a formula is made plain text, and read back as it was.

A cell that starts with = + - @ a tab or a carriage return gets an apostrophe in front. So does one that already
starts with apostrophes and then one of these, so that taking one away always gives the text that was there.
"""

import pyarrow as pa
import pyarrow.compute as pc

FORMULA = r"^'*[=+\-@\t\r]"
GUARDED = r"^'+[=+\-@\t\r]"
NUMBER = r"^[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?$"  # a class called -1 does no harm


def neutralise(table: pa.Table) -> pa.Table:
    """The table with its texts made safe for spreadsheets; columns of numbers are not touched.

    >>> neutralise(pa.table({"id": ["=1+1", "-1", "cat"]}))["id"].to_pylist()
    ["'=1+1", '-1', 'cat']
    """
    for position, column in enumerate(table.schema):
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            table = table.set_column(position, column, _guarded(table[column.name]))
    return table


def _guarded(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    is_number = pc.match_substring_regex(texts, NUMBER)
    is_formula = pc.and_not(pc.match_substring_regex(texts, FORMULA), is_number)
    return pc.if_else(is_formula, pc.replace_substring_regex(texts, "^", "'", max_replacements=1), texts)


def restore(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts as they were before `neutralise`."""
    return pc.if_else(pc.match_substring_regex(texts, GUARDED), pc.utf8_slice_codeunits(texts, 1), texts)
