"""Parquet, a row group at a time: the same schema, metadata and compression."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from undermargin.errors import InputError
from undermargin.scans.cleaning.edit import Edit
from undermargin.storage.files import replacing


def write_parquet(source: Path, target: Path, edit: Edit, label: str) -> None:
    """Write the rows that stay; a row group that loses all of its rows goes too."""
    with pq.ParquetFile(source) as file, replacing(target) as partial:
        about = file.metadata
        if about.num_rows != len(edit.is_kept):
            raise InputError(f"{source} now has {about.num_rows} rows, the scan saw {len(edit.is_kept)}")
        labels = file.read([label])[label]
        schema = file.schema_arrow
        with pq.ParquetWriter(partial, schema, compression=_compression(about)) as writer:
            start = 0
            for number in range(about.num_row_groups):
                group = file.read_row_group(number)
                rows = slice(start, start + len(group))
                start += len(group)
                taken = labels.take(pa.array(edit.label_from[rows]))
                place = schema.get_field_index(label)
                group = group.set_column(place, schema.field(place), taken)
                if np.any(edit.is_kept[rows]):
                    writer.write_table(group.filter(pa.array(edit.is_kept[rows])), row_group_size=len(group))


def _compression(about: pq.FileMetaData) -> dict[str, str] | str:
    if not about.num_row_groups:
        return "snappy"
    columns = [about.row_group(0).column(number) for number in range(about.num_columns)]
    return {column.path_in_schema: column.compression for column in columns}
