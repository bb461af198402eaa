"""Trains examples/data_parallel with one, two, and four processes, and compares losses with each other and with TensorFlow's.

    data_parallel.py --work DIR --judge PYTHON [--mpiexec COMMAND]

Batches have 128 rows, over all processes, and the last one of an epoch 5. With `--pieces`, losses and variables must have the same
bits; without, sums over rows have another order, and losses may differ by rounding. A process is killed in the middle of a training,
which must end and continue from its last state with the same bits.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from processes import Kill, Process, run

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "data_parallel"
DIGITS = ROOT / "examples" / "digits" / "digits.csv"
BATCH, STEPS = 128, 300
COUNTS = (1, 2, 4)
# Bounds of the differences of losses, which begin at 2.6.
BOUNDS = {"one process": 1e-5, "TensorFlow": 1e-5, "Keras's Adam": 1e-4}


def command(mpiexec: str, count: int, work: Path, state: Path, steps: int, *rest: str) -> list[str]:
    train = [sys.executable, "-m", "mpi4py", str(EXAMPLE / "train.py"), str(work), str(DIGITS), "--batch", str(BATCH)]
    return [mpiexec, "-n", str(count), *train, "--steps", str(steps), "--state", str(state), *rest]


def trained(*arguments) -> dict[str, np.ndarray]:
    """Returns the losses and variables of a training."""
    train = command(*arguments)
    subprocess.run(train, check=True, stdout=subprocess.DEVNULL)
    return dict(np.load(arguments[3]))


def difference(a: np.ndarray, b: np.ndarray) -> float:
    if a.shape != b.shape:
        sys.exit(f"expected {len(a)} losses, got {len(b)}")
    return float(np.abs(a.astype(np.float64) - b).max())


def has_same_bits(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    return a.keys() == b.keys() and all(a[name].tobytes() == b[name].tobytes() for name in a)


def interrupted(mpiexec: str, work: Path, expected: dict[str, np.ndarray], steps: int) -> str:
    """Kills one of two processes, continues, and compares with a training that nothing interrupted."""
    state = work / "killed.npz"
    rest = ("--pieces", "4", "--every", "100")

    def is_process(process: Process, _) -> bool:
        return "train.py" in process.command and process.command.startswith(sys.executable)

    try:
        run(command(mpiexec, 2, work, state, steps, *rest), {}, [Kill("a process", is_process, state.exists)], work / "log.txt", 120)
    except RuntimeError as error:
        if "the job failed" not in str(error):
            raise
    else:
        sys.exit("the job reported success after one of its processes was killed")
    done = len(np.load(state)["losses"])
    if not 0 < done < steps:
        sys.exit(f"the process was killed after {done} of {steps} steps")
    if not has_same_bits(trained(mpiexec, 2, work, state, steps, *rest), expected):
        sys.exit("the continued training differs from one that nothing interrupted")
    return f"one of 2 processes killed: the job failed, and continued after step {done} of {steps} with the same bits"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", required=True, type=Path)
    parser.add_argument("--judge", required=True, help="interpreter with TensorFlow")
    parser.add_argument("--mpiexec", default="mpiexec")
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    losses = [str(Path(__file__).with_name("losses.py")), str(EXAMPLE), str(DIGITS), str(work / "tensorflow.npz")]
    for script in ([str(EXAMPLE / "make_step.py"), str(work)], [*losses, "--batch", str(BATCH), "--steps", str(STEPS)]):
        subprocess.run([arguments.judge, *script], check=True, env=environment)

    runs = {n: trained(arguments.mpiexec, n, work, work / f"{n}.npz", STEPS) for n in COUNTS}
    pieces = {n: trained(arguments.mpiexec, n, work, work / f"pieces-{n}.npz", STEPS, "--pieces", "4") for n in COUNTS}
    judge = np.load(work / "tensorflow.npz")
    expected = {"one process": runs[1]["losses"], "TensorFlow": judge["same"], "Keras's Adam": judge["keras"]}
    ends = ", ".join(f"{name} {losses[0]:.4f} to {losses[-1]:.4f}" for name, losses in expected.items())
    print(f"data parallel: {STEPS} steps of {BATCH} rows, losses {ends}")
    problems = []
    for n in COUNTS:
        same = has_same_bits(pieces[n], pieces[1])
        for what, losses in (("", runs[n]["losses"]), (" in pieces", pieces[n]["losses"])):
            differences = {name: difference(others, losses) for name, others in expected.items()}
            print(f"data parallel: {n} processes{what}: losses at most", ", ".join(f"{d:.1e} from {name}" for name, d in differences.items()))
            problems += [f"{n} processes{what} and {name}" for name, d in differences.items() if d > BOUNDS[name]]
        print(f"data parallel: {n} processes in pieces: {'the same bits as' if same else 'other bits than'} one process")
        problems += [] if same else [f"bits of {n} processes"]
    steps = 4000
    whole = trained(arguments.mpiexec, 1, work, work / "whole.npz", steps, "--pieces", "4")
    print(f"data parallel: {interrupted(arguments.mpiexec, work, whole, steps)}")
    if problems:
        sys.exit(f"data parallel: different losses: {', '.join(problems)}")


if __name__ == "__main__":
    main()
