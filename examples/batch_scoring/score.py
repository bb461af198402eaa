"""Scores a Parquet data set with a compiled model on the workers of Ray Data, and prints rows per second by number of workers.

    python score.py [--rows N] [--workers 1,2,4] [--model SAVED_MODEL]

The artifact is a value: Ray sends it to its workers with the task, and each worker loads it once. Workers on one machine map the same
file of weights.
Without a model, a layer of random weights scores rows of 64 numbers. Needs `tfcompile` and `ray[data]`.
"""

import argparse
import logging
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import ray
import tfcompile

BATCH = 256
FEATURES = 64
HIDDEN = 512


def layer() -> bytes:
    """A GraphDef: y = relu(x a) b, with random weights that both fill a few pages."""
    rng = np.random.default_rng(0)

    def constant(name: str, *sizes: int) -> str:
        values = " ".join(f"float_val: {value:.5f}" for value in rng.standard_normal(sizes).ravel() / 8)
        shape = " ".join(f"dim {{ size: {size} }}" for size in sizes)
        tensor = f"tensor {{ dtype: DT_FLOAT tensor_shape {{ {shape} }} {values} }}"
        return f'node {{ name: "{name}" op: "Const" {FLOAT_DTYPE} attr {{ key: "value" value {{ {tensor} }} }} }}'

    nodes = [
        f'node {{ name: "x" op: "Placeholder" {FLOAT_DTYPE} attr {{ key: "shape" value {{ shape {{ '
        f"dim {{ size: {BATCH} }} dim {{ size: {FEATURES} }} }} }} }} }}",
        constant("a", FEATURES, HIDDEN),
        constant("b", HIDDEN, 1),
        f'node {{ name: "xa" op: "MatMul" input: "x" input: "a" {FLOAT} }}',
        f'node {{ name: "h" op: "Relu" input: "xa" {FLOAT} }}',
        f'node {{ name: "score" op: "MatMul" input: "h" input: "b" {FLOAT} }}',
    ]
    return "\n".join(nodes).encode()


FLOAT = 'attr { key: "T" value { type: DT_FLOAT } }'
FLOAT_DTYPE = 'attr { key: "dtype" value { type: DT_FLOAT } }'


def write_data(path: Path, rows: int) -> None:
    """Writes a Parquet data set of feature rows in several files."""
    path.mkdir()
    rng = np.random.default_rng(1)
    for part, begin in enumerate(range(0, rows, 16384)):
        count = min(16384, rows - begin)
        features = rng.standard_normal((count, FEATURES), np.float32)
        column = pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), FEATURES)
        pq.write_table(pa.table({"id": np.arange(begin, begin + count), "x": column}), path / f"{part:05}.parquet")


class Scorer:
    """Code of each worker, which loads the model when it starts."""

    def __init__(self, artifact: tfcompile.Artifact):
        self.model = artifact.load()
        ((self.feed, (_, self.shape)),) = self.model.feeds.items()
        (self.fetch,) = self.model.fetches

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        x = np.stack(batch["x"]).astype(np.float32, copy=False)
        # The model has a fixed batch size: the last batch is padded, and the scores of the padding
        # are dropped.
        whole = np.zeros(self.shape, np.float32)
        whole[: len(x)] = x
        scores = self.model(**{self.feed: whole})[self.fetch]
        return {"id": batch["id"], "score": scores[: len(x)].reshape(len(x), -1)[:, 0]}


def score(artifact: tfcompile.Artifact, data: Path, out: Path, workers: int) -> float:
    """Returns the seconds to read, score, and write all rows."""
    begin = time.perf_counter()
    # Workers share blocks, and small files are read as one block.
    blocks = ray.data.read_parquet(str(data)).repartition(target_num_rows_per_block=64 * BATCH)
    dataset = blocks.map_batches(
        Scorer,
        fn_constructor_args=(artifact,),
        batch_size=BATCH,
        compute=ray.data.ActorPoolStrategy(size=workers),
    )
    dataset.write_parquet(str(out))
    return time.perf_counter() - begin


def check(artifact: tfcompile.Artifact, data: Path, out: Path) -> None:
    """Checks the scores of the first rows against the model in this process."""
    rows = pq.read_table(data / "00000.parquet").slice(0, BATCH)
    x = np.stack(rows["x"].to_numpy()).astype(np.float32)
    table = pq.read_table(out).sort_by("id")
    if table["id"].to_pylist() != list(range(len(table))):
        raise SystemExit("rows are missing or were scored twice")
    got = table["score"].to_numpy()[: len(x)]
    whole = np.zeros((BATCH, x.shape[1]), np.float32)
    whole[: len(x)] = x
    (want,) = artifact.load()(whole).values()
    np.testing.assert_array_equal(got, want.reshape(BATCH, -1)[: len(x), 0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--model", help=f"a model that takes [{BATCH}, {FEATURES}] numbers")
    arguments = parser.parse_args()
    counts = [int(count) for count in arguments.workers.split(",")]
    artifact = tfcompile.compile(arguments.model or layer(), **({"batch": BATCH} if arguments.model else {}))
    ray.init(num_cpus=max(counts) + 1, include_dashboard=False, log_to_driver=False, logging_level="warning")
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory) / "data"
        write_data(data, arguments.rows)
        print(f"{arguments.rows} rows\nworkers  seconds  rows/s")
        for count in counts:
            out = Path(directory) / f"scores-{count}"
            seconds = score(artifact, data, out, count)
            check(artifact, data, out)
            print(f"{count:7}  {seconds:7.2f}  {arguments.rows / seconds:.0f}")
    ray.shutdown()


if __name__ == "__main__":
    main()
