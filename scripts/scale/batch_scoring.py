"""Runs the commands of examples/batch_scoring, kills their workers with SIGKILL, and counts rows.

    batch_scoring.py ray|spark|dask --model SAVED_MODEL --work DIR --judge PYTHON [--rows N]

Each identifier must occur exactly once in the result, and its scores must be TensorFlow's (network.py, which the interpreter PYTHON
runs). Fails, too, if nothing was killed or nothing was repeated. Prints one line of counts.
"""

import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from processes import Kill, Process, run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "batch_scoring"
FEATURES = 64
# Bound of the difference from scores in float64. Rounding in float32 makes less than 1e-6.
BOUND = 1e-5
LIMIT = 540


def write_rows(directory: Path, rows: int) -> np.ndarray:
    """Writes rows with the example's generator, and returns them by identifier."""
    command = [sys.executable, str(EXAMPLES / "make_data.py"), str(directory), "--rows", str(rows), "--rows-per-file", "5000"]
    subprocess.run(command, check=True)
    table = pq.read_table(directory / "rows").sort_by("id")
    if table["id"].to_pylist() != list(range(rows)):
        raise RuntimeError("the generator did not number the rows")
    return table["x"].combine_chunks().flatten().to_numpy().reshape(rows, FEATURES)


def count(directory: Path, pattern: str) -> int:
    return len(list(directory.rglob(pattern)))


def ray_job(work: Path, arguments: list[str]) -> tuple[list[str], int]:
    """Returns the kills, and the number of tasks that Ray repeated."""
    incomplete = work / "scores.incomplete"

    def titled(start: str):
        return lambda process, _: process.command.startswith(start)

    kills = [
        # The title of an actor that computes has the name of its method.
        Kill("a scoring worker", titled("ray::MapWorker(MapBatches(Scorer)).submit"), lambda: count(incomplete, "*.parquet") >= 1),
        Kill("a writing worker", titled("ray::Write"), lambda: count(incomplete, "*.parquet") >= 2),
        Kill("a scoring worker", titled("ray::MapWorker(MapBatches(Scorer)).submit"), lambda: count(incomplete, "*.parquet") >= 5),
    ]
    # Names of sockets must be short.
    with tempfile.TemporaryDirectory(prefix="ray-") as temporary:
        environment = {"RAY_TMPDIR": temporary, "RAY_DEDUP_LOGS": "0"}
        lines = run([sys.executable, str(EXAMPLES / "score_ray.py"), *arguments], environment, kills, work / "log.txt", LIMIT)
    # Ray reports each failed attempt that it repeats.
    repeated = re.findall(r"Task (\S+) failed\..* will be retried", (work / "log.txt").read_text(errors="replace"))
    return lines, len(repeated)


def spark_job(work: Path, arguments: list[str]) -> tuple[list[str], int]:
    """Returns the kills, and the number of attempts after the first one of a task."""
    incomplete = work / "scores.incomplete"
    events = work / "events"
    configuration = work / "configuration"
    for directory in (events, configuration):
        directory.mkdir()
    # The rows are few, so tasks are small.
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.sql.files.maxPartitionBytes": "2m",
        "spark.sql.files.openCostInBytes": "1m",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    (configuration / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))

    def is_executor(process: Process, _) -> bool:
        return "CoarseGrainedExecutorBackend" in process.command and "/java" in process.command.partition(" ")[0]

    def is_python_worker(process: Process, below: dict[int, Process]) -> bool:
        parent = below.get(process.parent)
        return "pyspark.daemon" in process.command and parent is not None and "pyspark.daemon" in parent.command

    kills = [
        Kill("an executor", is_executor, lambda: count(incomplete, "task_*/*.parquet") >= 2),
        Kill("a Python worker", is_python_worker, lambda: count(incomplete, "task_*/*.parquet") >= 6),
        Kill("an executor", is_executor, lambda: count(incomplete, "task_*/*.parquet") >= 9),
    ]
    environment = {"SPARK_CONF_DIR": str(configuration), "SPARK_LOCAL_DIRS": str(work / "local"), "SPARK_WORKER_DIR": str(work / "workers")}
    lines = run([sys.executable, str(EXAMPLES / "score_spark.py"), *arguments], environment, kills, work / "log.txt", LIMIT)
    told = [json.loads(line) for path in events.iterdir() for line in path.read_text().splitlines()]
    ended = [event for event in told if event["Event"] == "SparkListenerTaskEnd"]
    reasons = collections.Counter(event["Task End Reason"]["Reason"] for event in ended)
    print("spark: ends of tasks:", ", ".join(f"{number} {reason}" for reason, number in sorted(reasons.items())))
    return lines, sum(event["Task Info"]["Attempt"] > 0 for event in ended)


def dask_job(work: Path, arguments: list[str]) -> tuple[list[str], int]:
    """Returns the kills, and the number of tasks that Dask repeated."""
    incomplete = work / "scores.incomplete"

    def is_worker(process: Process, _) -> bool:
        return "spawn_main" in process.command

    kills = [
        Kill("a worker", is_worker, lambda: count(incomplete, "part-*") >= 2),
        Kill("a worker", is_worker, lambda: count(incomplete, "part-*") >= 12),
    ]
    environment = {"DASK_TEMPORARY_DIRECTORY": str(work / "tmp")}
    lines = run([sys.executable, str(EXAMPLES / "score_dask.py"), *arguments], environment, kills, work / "log.txt", LIMIT)
    log = (work / "log.txt").read_text(errors="replace")
    # Dask names the finished tasks that it repeats because their worker died.
    lost = re.findall(r"caused the cluster to lose already computed task\(s\).*?\{(.*?)\}", log, re.DOTALL)
    return lines, sum(text.count("'score-") for text in lost)


def check(x: np.ndarray, out: Path, directory: Path, judge: str, model: str) -> tuple[int, int, float]:
    """Returns the number of rows, of different identifiers, and the largest difference from TensorFlow's scores."""
    table = pq.read_table(out)
    identifiers = table["id"].to_numpy()
    distinct = np.unique(identifiers)
    np.save(directory / "x.npy", x)
    network = Path(__file__).with_name("network.py")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    subprocess.run([judge, str(network), "score", model, str(directory / "x.npy"), str(directory)], check=True, env=environment)
    difference = 0.0
    if len(distinct) == len(identifiers) == len(x):
        order = np.argsort(identifiers)
        for name in ("score", "classes"):
            column = table[name].combine_chunks()
            got = (column if pa.types.is_floating(column.type) else column.flatten()).to_numpy().reshape(len(x), -1)
            expected = np.load(directory / f"{name}.npy").reshape(len(x), -1)
            difference = max(difference, float(np.abs(got[order] - expected).max()))
    return len(identifiers), len(distinct), difference


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", choices=("ray", "spark", "dask"))
    parser.add_argument("--model", required=True)
    parser.add_argument("--work", required=True, type=Path)
    parser.add_argument("--judge", required=True)
    parser.add_argument("--rows", type=int, default=200_003)
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    x = write_rows(work / "data", arguments.rows)
    out = work / "scores"
    command = ["--model", arguments.model, "--data", str(work / "data" / "rows"), "--out", str(out)]
    begin = time.monotonic()
    lines, repeated = {"ray": ray_job, "spark": spark_job, "dask": dask_job}[arguments.system](work, command)
    seconds = time.monotonic() - begin
    rows, distinct, difference = check(x, out, work, arguments.judge, arguments.model)
    print(
        f"{arguments.system}: {len(x)} rows in, {rows} rows out, {distinct} distinct; {'; '.join(lines)}; "
        f"{repeated} repeated; at most {difference:.1e} from TensorFlow; {seconds:.0f} s"
    )
    if not rows == distinct == len(x):
        sys.exit(f"{arguments.system}: rows are missing or were scored twice")
    if difference > BOUND:
        sys.exit(f"{arguments.system}: scores differ from TensorFlow's")
    if repeated == 0:
        sys.exit(f"{arguments.system}: no task was repeated, so the kills hit nothing")


if __name__ == "__main__":
    main()
