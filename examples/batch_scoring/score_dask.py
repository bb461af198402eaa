"""Scores a Parquet data set with a compiled model on Dask, one task for each file.

    python score_dask.py --model MODEL --data ROWS --out SCORES [--columns FEED=COLUMN,...] [--scheduler ADDRESS]

If a worker dies, Dask repeats its tasks elsewhere. A repeated task overwrites its own file, and the directory gets its name when all files
are complete: each row is in SCORES once. Needs `dask[distributed]`, `pyarrow`, and `tfcompile` on every machine.
"""

import contextlib
import os
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
import scoring
import tfcompile
from distributed import Client, LocalCluster
from distributed.protocol.pickle import cloudpickle


def score(number: int, path: str, artifact: tfcompile.Artifact, columns: dict[str, list[str]], identifier: str, out: Path) -> None:
    """Scores the rows of a file."""
    scorer = scoring.Scorer(artifact, columns, identifier)
    rows = pq.read_table(path, columns=scorer.names)
    # Files appear complete, even if another attempt writes the same one.
    with tempfile.NamedTemporaryFile(dir=out, prefix="_", delete=False) as file:
        pq.write_table(scorer(rows), file)
    os.replace(file.name, out / f"part-{number:06}.parquet")


def identity(artifact: tfcompile.Artifact) -> tfcompile.Artifact:
    return artifact


def main() -> None:
    parser = scoring.parser(__doc__)
    parser.add_argument("--scheduler", help="address of the cluster's scheduler (default: processes of this machine)")
    arguments = parser.parse_args()
    job = scoring.Job(arguments)
    # Workers get the code with the job.
    cloudpickle.register_pickle_by_value(scoring)
    here = None if arguments.scheduler else LocalCluster(n_workers=arguments.workers, threads_per_worker=1, dashboard_address=None)
    files = [str(path) for path in sorted(arguments.data.resolve().rglob("*.parquet"))]
    job.incomplete.mkdir(parents=True)
    with here or contextlib.nullcontext(), Client(here or arguments.scheduler) as client:
        # Unlike scattered data, the result of a task is computed again if the workers that have it
        # die.
        artifact = client.submit(identity, job.artifact)
        tasks = client.map(
            score, range(len(files)), files, artifact=artifact, columns=job.columns, identifier=arguments.id, out=job.incomplete, pure=False
        )
        client.gather(tasks)
    for rest in job.incomplete.glob("_*"):
        rest.unlink()
    job.publish()


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError, NotImplementedError) as error:
        sys.exit(f"error: {error}")
