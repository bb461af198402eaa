"""Scores a Parquet data set with a compiled model on Ray Data.

    python score_ray.py --model MODEL --data ROWS --out SCORES [--columns FEED=COLUMN,...] [--workers N]

Runs on the cluster that RAY_ADDRESS names, or else on this machine. If a worker dies, Ray starts another one and repeats the blocks that
it had. A repeated block overwrites its own file, and the directory gets its name when all files are complete: each row is in SCORES
once. Needs `ray[data]` here, and `tfcompile` on every machine.
"""

import logging
import os
import sys

import ray
import ray.data
import scoring

# Batches in a block. Blocks are small enough that all workers get some.
BLOCK = 16


def main() -> None:
    arguments = scoring.parser(__doc__).parse_args()
    job = scoring.Job(arguments)
    # Workers get the code with the job.
    ray.cloudpickle.register_pickle_by_value(scoring)
    if "RAY_ADDRESS" in os.environ:
        ray.init(log_to_driver=False)
    else:
        # One more than scores: a processor that reads and writes.
        ray.init(num_cpus=arguments.workers + 1, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    rows = ray.data.read_parquet(str(arguments.data.resolve())).select_columns(job.names)
    scores = rows.repartition(target_num_rows_per_block=BLOCK * arguments.batch).map_batches(
        scoring.Scorer,
        fn_constructor_args=(job.artifact, job.columns, arguments.id),
        batch_size=BLOCK * arguments.batch,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=arguments.workers),
    )
    scores.write_parquet(str(job.incomplete))
    job.publish()
    ray.shutdown()


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError, NotImplementedError) as error:
        sys.exit(f"error: {error}")
