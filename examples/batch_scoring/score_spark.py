"""Scores a Parquet data set with a compiled model on Spark.

    python score_spark.py --model MODEL --data ROWS --out SCORES [--columns FEED=COLUMN,...] [--master URL]

If a worker dies, Spark repeats its tasks. Spark's commit protocol takes the files of one attempt of each task, and the directory gets
its name when all are complete: each row is in SCORES once. Needs `pyspark`, `pyarrow`, and `tfcompile` on every machine.
"""

import sys
from typing import Iterator

import pyarrow as pa
import pyspark.cloudpickle
import scoring
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema


def main() -> None:
    parser = scoring.parser(__doc__)
    parser.add_argument("--master", help="URL of the cluster (default: processes of this machine, one for each worker)")
    arguments = parser.parse_args()
    job = scoring.Job(arguments)
    # Executors get the code with the job.
    pyspark.cloudpickle.register_pickle_by_value(scoring)
    spark = (
        SparkSession.builder.appName("batch scoring")
        .master(arguments.master or f"local-cluster[{arguments.workers},1,1024]")
        # Files of an attempt appear when the job is committed, not when the attempt ends.
        .config("spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version", "1")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", str(16 * arguments.batch))
        .getOrCreate()
    )
    model = spark.sparkContext.broadcast(job.artifact)
    columns, key = job.columns, arguments.id

    def score(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        scorer = scoring.Scorer(model.value, columns, key)
        for batch in batches:
            yield from scorer(pa.Table.from_batches([batch])).to_batches()

    rows = spark.read.parquet(str(arguments.data.resolve())).select(*job.names)
    rows.mapInArrow(score, from_arrow_schema(job.schema)).write.parquet(str(job.incomplete))
    job.publish()
    spark.stop()


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError, NotImplementedError) as error:
        sys.exit(f"error: {error}")
