"""Scoring of rows with a compiled model: the code that the commands for Ray Data, Spark, and Dask share.

Columns of a table of Arrow are the feeds of the model, and its fetches are columns of the result, next to the identifier of each row.
Knows neither Ray nor Spark nor Dask.
"""

import argparse
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import tfcompile

# Types of fetches that Spark does not have, and the types of their columns.
WIDER = {np.float16: np.float32, np.uint8: np.int16, np.uint16: np.int32, np.uint32: np.int64}


class Scorer:
    """A model in the process of a worker. Calling it with rows returns their identifiers and scores."""

    def __init__(self, artifact: tfcompile.Artifact, columns: dict[str, list[str]], key: str):
        self.model = artifact.load()
        if "batch" not in self.model.dimensions:
            raise ValueError("the model has a fixed batch size: save it with an open leading dimension (None)")
        self.largest = self.model.dimensions["batch"][1]
        self.columns = {feed: columns.get(feed, [feed]) for feed in self.model.feeds}
        unknown = columns.keys() - self.columns.keys()
        if unknown:
            raise ValueError(f"unknown feed {min(unknown)!r}; the feeds are {', '.join(self.columns)}")
        self.key = key

    @property
    def names(self) -> list[str]:
        """Names of the columns that scoring reads."""
        return list(dict.fromkeys([self.key, *(name for names in self.columns.values() for name in names)]))

    def schema(self, rows: pa.Schema) -> pa.Schema:
        """Schema of the results. Raises `ValueError` if rows lack a column."""
        missing = [name for name in self.names if name not in rows.names]
        if missing:
            raise ValueError(f"the rows have no column {missing[0]!r}; they have {', '.join(rows.names)}")
        fetches = self.model.fetches.items()
        if self.key in self.model.fetches:
            raise ValueError(f"a fetch and the identifier have the name {self.key!r}: rename the column of the identifier")
        for name, (_, shape) in fetches:
            if shape[:1] != (self.largest,):
                raise ValueError(f"the fetch {name!r} does not have one result for each row")
        fields = [pa.field(name, column_type(dtype, shape)) for name, (dtype, shape) in fetches]
        return pa.schema([pa.field(self.key, rows.field(self.key).type), *fields])

    def __call__(self, rows: pa.Table) -> pa.Table:
        schema = self.schema(rows.schema)
        feeds = {feed: self.feed(feed, rows) for feed in self.columns}
        results = {name: [] for name in self.model.fetches}
        for begin in range(0, len(rows), self.largest):
            # The last batch is smaller; the model takes any size up to the largest.
            batch = {feed: array[begin : begin + self.largest] for feed, array in feeds.items()}
            for name, array in self.model(**batch).items():
                results[name].append(array)
        scores = [column(results[name], schema.field(name).type) for name in results]
        return pa.table([rows.column(self.key).combine_chunks(), *scores], schema=schema)

    def feed(self, feed: str, rows: pa.Table) -> np.ndarray:
        """Returns the columns of a feed as one array, whose first dimension are the rows."""
        dtype, (_, *sizes) = self.model.feeds[feed]
        names = self.columns[feed]
        arrays = [values(name, rows.column(name).combine_chunks()) for name in names]
        array = arrays[0] if len(arrays) == 1 else np.stack(arrays, axis=1)
        if array.size != len(rows) * np.prod(sizes, dtype=int):
            count = array.size // max(len(rows), 1)
            raise ValueError(f"feed {feed!r} expects {np.prod(sizes, dtype=int)} values in each row, but {', '.join(names)} have {count}")
        return array.reshape(len(rows), *sizes).astype(dtype, casting="same_kind", copy=False)


def values(name: str, array: pa.Array) -> np.ndarray:
    """Returns the numbers of a column: one for each row, or a list for each row."""
    while pa.types.is_list(array.type) or pa.types.is_large_list(array.type) or pa.types.is_fixed_size_list(array.type):
        if array.null_count:
            break
        if not pa.types.is_fixed_size_list(array.type):
            lengths = np.unique(np.diff(array.offsets.to_numpy()))
            if len(lengths) > 1:
                raise ValueError(f"column {name!r}: rows have from {lengths[0]} to {lengths[-1]} values")
        array = array.flatten()
    if array.null_count:
        raise ValueError(f"column {name!r} has {array.null_count} missing values: fill or drop them before scoring")
    return array.to_numpy(zero_copy_only=False)


def column_type(dtype: np.dtype, shape: tuple[int, ...]) -> pa.DataType:
    """Returns the type of a fetch's column: a number if each row has one, otherwise a list."""
    # NumPy's types that are not its own, such as bfloat16, are floats.
    element = pa.float32() if dtype.kind == "V" else pa.from_numpy_dtype(WIDER.get(dtype.type, dtype))
    return element if np.prod(shape[1:], dtype=int) == 1 else pa.list_(element)


def column(batches: list[np.ndarray], of: pa.DataType) -> pa.Array:
    """Returns the results of all batches as a column."""
    if not batches:
        return pa.array([], of)
    array = np.concatenate(batches)
    element = of.value_type if pa.types.is_list(of) else of
    flat = pa.array(array.reshape(-1).astype(element.to_pandas_dtype(), copy=False), element)
    if not pa.types.is_list(of):
        return flat
    offsets = np.arange(len(array) + 1, dtype=np.int32) * (len(flat) // len(array))
    return pa.ListArray.from_arrays(offsets, flat)


def parser(description: str) -> argparse.ArgumentParser:
    """Returns the parser of the arguments that all commands have."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="a model that `tfcompile build` reads, such as a SavedModel, with an open batch")
    parser.add_argument("--data", required=True, type=Path, help="directory of Parquet files, which all machines can read")
    parser.add_argument("--out", required=True, type=Path, help="directory for the scores, which all machines can write; must not exist")
    parser.add_argument("--id", default="id", help="column that identifies a row (default: id)")
    parser.add_argument(
        "--columns", action="append", default=[], metavar="FEED=COLUMN,...", help="columns of a feed (default: the one with its name)"
    )
    parser.add_argument("--batch", type=int, default=256, help="rows of the largest batch (default: 256)")
    parser.add_argument("--fetch", action="append", default=[], help="result of a GraphDef (default: its only output)")
    parser.add_argument("--signature", help="signature of a SavedModel")
    parser.add_argument("--workers", type=int, default=2, help="workers that score (default: 2)")
    return parser


class Job:
    """What a command does besides scoring: it compiles the model, checks the columns, and publishes complete results."""

    def __init__(self, arguments: argparse.Namespace):
        self.out = arguments.out.resolve()
        self.incomplete = self.out.with_name(self.out.name + ".incomplete")
        if self.out.exists():
            raise ValueError(f"'{self.out}' exists: choose another directory for the scores")
        rows = pa.dataset.dataset(arguments.data, format="parquet").schema
        columns = dict(entry.partition("=")[::2] for entry in arguments.columns)
        self.columns = {feed: names.split(",") for feed, names in columns.items()}
        self.artifact = tfcompile.compile(
            arguments.model, batch=(1, arguments.batch), signature=arguments.signature, fetches=arguments.fetch
        )
        scorer = Scorer(self.artifact, self.columns, arguments.id)
        self.schema, self.names = scorer.schema(rows), scorer.names
        # Results of a job that died.
        shutil.rmtree(self.incomplete, ignore_errors=True)

    def publish(self) -> None:
        """Gives the directory its name, which only complete results have."""
        self.incomplete.rename(self.out)
