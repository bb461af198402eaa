"""Writes a Parquet data set of rows with random numbers, and a model that scores them, without TensorFlow.

    python make_data.py DIR [--rows N] [--rows-per-file N]

DIR/rows gets files with the columns `id` (0 to N - 1) and `x` (64 numbers), and DIR/model.pbtxt the graph score = relu(x a) b.
"""

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FEATURES = 64
HIDDEN = 512
FLOAT = 'attr { key: "T" value { type: DT_FLOAT } }'
FLOAT_DTYPE = 'attr { key: "dtype" value { type: DT_FLOAT } }'


def weights() -> dict[str, np.ndarray]:
    """Returns the weights of the model, as rounded in its text."""
    rng = np.random.default_rng(0)
    sizes = {"a": (FEATURES, HIDDEN), "b": (HIDDEN, 1)}
    return {name: np.round(rng.standard_normal(size) / 8, 5).astype(np.float32) for name, size in sizes.items()}


def graph() -> str:
    """Returns the model as a GraphDef with an open batch."""

    def constant(name: str, array: np.ndarray) -> str:
        numbers = " ".join(f"float_val: {value:.5f}" for value in array.ravel())
        shape = " ".join(f"dim {{ size: {size} }}" for size in array.shape)
        tensor = f"tensor {{ dtype: DT_FLOAT tensor_shape {{ {shape} }} {numbers} }}"
        return f'node {{ name: "{name}" op: "Const" {FLOAT_DTYPE} attr {{ key: "value" value {{ {tensor} }} }} }}'

    nodes = [
        f'node {{ name: "x" op: "Placeholder" {FLOAT_DTYPE} attr {{ key: "shape" value {{ shape {{ '
        f"dim {{ size: -1 }} dim {{ size: {FEATURES} }} }} }} }} }}",
        *(constant(name, array) for name, array in weights().items()),
        f'node {{ name: "xa" op: "MatMul" input: "x" input: "a" {FLOAT} }}',
        f'node {{ name: "h" op: "Relu" input: "xa" {FLOAT} }}',
        f'node {{ name: "score" op: "MatMul" input: "h" input: "b" {FLOAT} }}',
    ]
    return "\n".join(nodes)


def write_rows(directory: Path, rows: int, rows_per_file: int) -> None:
    """Writes the rows in several files."""
    directory.mkdir(parents=True)
    rng = np.random.default_rng(1)
    for part, begin in enumerate(range(0, rows, rows_per_file)):
        count = min(rows_per_file, rows - begin)
        features = rng.standard_normal((count, FEATURES), np.float32)
        column = pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), FEATURES)
        pq.write_table(pa.table({"id": np.arange(begin, begin + count), "x": column}), directory / f"{part:05}.parquet")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rows-per-file", type=int, default=10_000)
    arguments = parser.parse_args()
    write_rows(arguments.directory / "rows", arguments.rows, arguments.rows_per_file)
    (arguments.directory / "model.pbtxt").write_text(graph())


if __name__ == "__main__":
    main()
