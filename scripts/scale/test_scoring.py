"""Columns and errors of examples/batch_scoring/scoring.py. Expected numbers are computed by hand.

    python -m unittest test_scoring.py      with examples/batch_scoring on PYTHONPATH
"""

import tempfile
import unittest
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import scoring
import tfcompile

FLOAT = 'attr { key: "T" value { type: DT_FLOAT } }'


def placeholder(name: str, *sizes: int, dtype: str = "DT_FLOAT") -> str:
    shape = " ".join(f"dim {{ size: {size} }}" for size in sizes)
    return (
        f'node {{ name: "{name}" op: "Placeholder" attr {{ key: "dtype" value {{ type: {dtype} }} }} '
        f'attr {{ key: "shape" value {{ shape {{ {shape} }} }} }} }}\n'
    )


# y = x + x for three numbers in each row, z = w * w for one.
GRAPH = (
    placeholder("x", -1, 3)
    + placeholder("w", -1)
    + f'node {{ name: "y" op: "AddV2" input: "x" input: "x" {FLOAT} }}\n'
    + f'node {{ name: "z" op: "Mul" input: "w" input: "w" {FLOAT} }}\n'
).encode()


def artifact(graph: bytes = GRAPH, **options) -> tfcompile.Artifact:
    return tfcompile.compile(graph, **{"batch": (1, 4), "fetches": ["y", "z"], **options})


def rows(**columns) -> pa.Table:
    return pa.table({"id": ["a", "b", "c"], "x": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]], "w": [1, 2, 3], **columns})


class Columns(unittest.TestCase):
    def test_lists_and_numbers_are_feeds(self):
        scores = scoring.Scorer(artifact(), {}, "id")(rows())
        self.assertEqual(scores.column_names, ["id", "y", "z"])
        self.assertEqual(scores["id"].to_pylist(), ["a", "b", "c"])
        self.assertEqual(scores["y"].to_pylist(), [[2, 4, 6], [8, 10, 12], [14, 16, 18]])
        self.assertEqual(scores["z"].to_pylist(), [1, 4, 9])

    def test_several_columns_are_one_feed(self):
        table = pa.table({"key": [7, 8], "p": [1, 2], "q": [3.0, 4.0], "r": [5, 6]})
        scorer = scoring.Scorer(artifact(), {"x": ["p", "q", "r"], "w": ["p"]}, "key")
        self.assertEqual(scorer.names, ["key", "p", "q", "r"])
        scores = scorer(table)
        self.assertEqual(scores["y"].to_pylist(), [[2, 6, 10], [4, 8, 12]])
        self.assertEqual(scores["z"].to_pylist(), [1, 4])

    def test_more_rows_than_a_batch(self):
        count = 11
        table = pa.table({"id": range(count), "x": [[k, 0, -k] for k in range(count)], "w": [0.5] * count})
        # Slices keep offsets into the whole column.
        for part in (table, table.slice(3), table.slice(0, 0)):
            scores = scoring.Scorer(artifact(), {}, "id")(part)
            self.assertEqual(scores["y"].to_pylist(), [[2 * k, 0, -2 * k] for k in part["id"].to_pylist()])

    def test_types_that_spark_lacks_are_widened(self):
        graph = GRAPH.replace(b'name: "z" op: "Mul" input: "w" input: "w" attr { key: "T" value { type: DT_FLOAT } }', (
            b'name: "z" op: "Cast" input: "w" attr { key: "SrcT" value { type: DT_FLOAT } } attr { key: "DstT" value { type: DT_UINT8 } }'
        ))
        scores = scoring.Scorer(artifact(graph), {}, "id")(rows(w=[1, 200, 3]))
        self.assertEqual((scores["z"].type, scores["z"].to_pylist()), (pa.int16(), [1, 200, 3]))

    def refused(self, pattern: str, table: pa.Table | None = None, columns: dict | None = None, **options):
        with self.assertRaisesRegex(ValueError, pattern):
            scoring.Scorer(artifact(**options), columns or {}, "id")(rows() if table is None else table)

    def test_wrong_columns_are_refused(self):
        self.refused("no column 'x'; they have id, w", rows().drop_columns(["x"]))
        self.refused("column 'w' has 1 missing values", rows().set_column(2, "w", pa.array([1, None, 3])))
        self.refused("column 'x' has 1 missing values", rows().set_column(1, "x", pa.array([[1.0] * 3, None, [2.0] * 3])))
        self.refused("column 'x': rows have from 1 to 3 values", rows().set_column(1, "x", pa.array([[1.0], [1.0] * 3, [2.0] * 3])))
        self.refused("feed 'x' expects 3 values in each row, but x have 2", rows().set_column(1, "x", pa.array([[1.0, 2.0]] * 3)))
        self.refused("unknown feed 'v'; the feeds are", columns={"v": ["w"]})

    def test_a_fixed_batch_is_refused(self):
        self.refused("fixed batch size", batch=3)


class Jobs(unittest.TestCase):
    def test_only_complete_results_have_the_name(self):
        with tempfile.TemporaryDirectory() as directory:
            here = Path(directory)
            (here / "rows").mkdir()
            pq.write_table(rows(), here / "rows" / "0.parquet")
            (here / "model.pbtxt").write_bytes(GRAPH)
            # The results of a job that died.
            (here / "out.incomplete").mkdir()
            (here / "out.incomplete" / "old.parquet").write_bytes(b"")
            arguments = ["--model", str(here / "model.pbtxt"), "--data", str(here / "rows"), "--out", str(here / "out")]
            arguments = scoring.parser("").parse_args([*arguments, "--columns", "x=x", "--fetch", "y", "--fetch", "z"])
            job = scoring.Job(arguments)
            self.assertFalse(job.out.exists() or job.incomplete.exists())
            self.assertEqual(job.schema, pa.schema({"id": pa.string(), "y": pa.list_(pa.float32()), "z": pa.float32()}))
            job.incomplete.mkdir()
            job.publish()
            self.assertTrue(job.out.exists())
            with self.assertRaisesRegex(ValueError, "exists"):
                scoring.Job(arguments)


if __name__ == "__main__":
    unittest.main()
