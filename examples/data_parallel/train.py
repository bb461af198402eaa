"""Trains a compiled step on several processes or machines, which average their gradients with MPI.

    mpiexec -n 2 python -m mpi4py train.py DIR DIGITS.csv [--batch N] [--steps N] [--pieces N] [--state FILE]

DIR is what make_step.py wrote, and DIGITS.csv has 64 pixels and a digit in each row. Each process computes the gradients of its rows of a
batch. The mean over the batch is the average of theirs, weighted by their numbers of rows, so that a batch may have any number of rows.

With --pieces, the batch is computed in that many pieces, whose sums are added in the same order for any number of processes: one process,
two, and four return the same bits. With --state, the variables and losses are written to a file from time to time, and a training that
finds the file continues there. `-m mpi4py` ends all processes if one fails. Needs `mpi4py`.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import tfcompile
from mpi4py import MPI


class Gradients:
    """Gradients of a batch and their exchange. Loss and gradients are one array, so that a step has one message."""

    def __init__(self, model: tfcompile.Model, communicator: MPI.Comm):
        self.model, self.communicator = model, communicator
        self.sizes = {name: int(np.prod(shape)) for name, (_, shape) in model.fetches.items()}
        self.length = sum(self.sizes.values())

    def summed(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Returns the loss and the gradients, summed over rows."""
        if len(x) == 0:
            return np.zeros(self.length, np.float32)
        results = self.model(x=x, y=y)
        # The model returns means over rows.
        return np.concatenate([results[name].ravel() for name in self.sizes]) * np.float32(len(x))

    def mean(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Returns the loss and the gradients of a batch that all processes know, of which each computes its rows."""
        rank, size = self.communicator.rank, self.communicator.size
        own = slice(len(x) * rank // size, len(x) * (rank + 1) // size)
        sums = self.summed(x[own], y[own])
        self.communicator.Allreduce(MPI.IN_PLACE, sums)
        return sums / np.float32(len(x))

    def mean_in_pieces(self, x: np.ndarray, y: np.ndarray, pieces: int) -> np.ndarray:
        """Like `mean`, with the same additions in the same order for each number of processes, a power of two up to `pieces`."""
        bounds = [len(x) * k // pieces for k in range(pieces + 1)]
        rank, size = self.communicator.rank, self.communicator.size
        share = pieces // size
        own = [slice(*bounds[k : k + 2]) for k in range(rank * share, (rank + 1) * share)]
        sums = [self.summed(x[rows], y[rows]) for rows in own]
        # Adds neighbors, then their sums, and so on: first in this process, then with others.
        while len(sums) > 1:
            sums = [left + right for left, right in zip(sums[::2], sums[1::2])]
        (total,) = sums
        distance = 1
        while distance < size:
            other = np.empty_like(total)
            self.communicator.Sendrecv(total, rank ^ distance, recvbuf=other, source=rank ^ distance)
            # Both sides add the same two numbers, and their order does not matter.
            total = total + other
            distance *= 2
        return total / np.float32(len(x))

    def named(self, array: np.ndarray) -> dict[str, np.ndarray]:
        """Returns the loss and the gradients by name, as parts of the array."""
        parts, begin = {}, 0
        for name, size in self.sizes.items():
            parts[name] = array[begin : begin + size].reshape(self.model.fetches[name][1])
            begin += size
        return parts


def write(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Writes arrays to a file, which is always complete: either the old one or the new one."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        np.savez(file, **arrays)
    os.replace(file.name, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("digits", type=Path)
    parser.add_argument("--batch", type=int, default=128, help="rows of a batch, over all processes (default: 128)")
    parser.add_argument("--steps", type=int, default=200, help="(default: 200)")
    parser.add_argument("--pieces", type=int, help="compute batches in this many pieces, a power of two, for the same bits everywhere")
    parser.add_argument("--state", type=Path, help="file of the variables and losses (.npz), to continue from and to write")
    parser.add_argument("--every", type=int, default=100, help="steps between two writes of the state (default: 100)")
    arguments = parser.parse_args()
    communicator = MPI.COMM_WORLD
    pieces = arguments.pieces
    if pieces is not None and (pieces & (pieces - 1) or pieces % communicator.size):
        parser.error(f"--pieces: expected a power of two that {communicator.size} processes can share evenly, got {pieces}")

    # One process compiles and reads, and the others receive the artifacts and the variables.
    sent = None
    if communicator.rank == 0:
        step = arguments.directory / "step"
        largest = -(-arguments.batch // (pieces or communicator.size))
        begin = arguments.state if arguments.state and arguments.state.exists() else arguments.directory / "start.npz"
        sent = (
            # The gradients only read the variables, which would become constants.
            tfcompile.compile(step, signature="gradients", variables_to_feed="all", batch=(1, largest)),
            tfcompile.compile(step, signature="apply"),
            dict(np.load(begin)),
        )
    computes, applies, state = communicator.bcast(sent)
    apply = applies.load()
    gradients = Gradients(computes.load(variables_of=apply), communicator)
    # All processes begin with the same variables, and make the same updates.
    losses = list(state.pop("losses", []))
    for name, value in state.items():
        apply.set_variable(name, value)

    digits = np.loadtxt(arguments.digits, np.float32, delimiter=",")
    x, y = digits[:, :-1] / 16, digits[:, -1].astype(np.int32)
    # The last batch of an epoch is smaller.
    batches = [slice(row, row + arguments.batch) for row in range(0, len(x), arguments.batch)]
    first = len(losses)
    begin = time.perf_counter()
    for step in range(first, arguments.steps):
        batch = batches[step % len(batches)]
        mean = gradients.mean(x[batch], y[batch]) if pieces is None else gradients.mean_in_pieces(x[batch], y[batch], pieces)
        named = gradients.named(mean)
        losses.append(named.pop("loss"))
        apply(**named)
        is_last = step + 1 == arguments.steps
        if arguments.state and communicator.rank == 0 and (is_last or (step + 1) % arguments.every == 0):
            write(arguments.state, {"losses": np.array(losses, np.float32), **apply.variables})
    seconds = time.perf_counter() - begin
    if communicator.rank == 0 and first < arguments.steps:
        speed = (arguments.steps - first) / seconds
        print(f"{communicator.size} processes: steps {first} to {arguments.steps - 1}, {speed:.1f} steps/s, loss {losses[first]:.4f} to {losses[-1]:.4f}")


if __name__ == "__main__":
    main()
