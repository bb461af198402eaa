"""Runs models with LiteRT in a worker process, so that a crash of a kernel costs one case.

glibc fills the memory of a worker with a byte, so that two workers differ where a kernel reads or leaves uninitialized
memory.
"""

import multiprocessing
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

KERNELS = {"reference": "BUILTIN_REF", "optimized": "BUILTIN_WITHOUT_DEFAULT_DELEGATES"}


def invoke(content, feeds, kernels, runs, signature):
    """Returns the outputs of each run and the shapes of the main subgraph's tensors."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=content, experimental_op_resolver_type=getattr(OpResolverType, KERNELS[kernels])
    )
    if signature is not None:
        return signature_runs(interpreter, signature, feeds, runs), {}
    inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
    for detail, values in zip(inputs, feeds, strict=True):
        if tuple(detail["shape"]) != values.shape:
            interpreter.resize_tensor_input(detail["index"], values.shape)
    interpreter.allocate_tensors()
    results = []
    for _ in range(runs):
        for detail, values in zip(inputs, feeds):
            interpreter.set_tensor(detail["index"], values)
        interpreter.invoke()
        results.append([output(interpreter, k) for k in range(len(outputs))])
    shapes = {}
    for detail in interpreter.get_tensor_details():
        shapes[detail["index"]] = tuple(int(size) for size in detail["shape"])
    for detail, values in zip(outputs, results[-1]):
        shapes[detail["index"]] = values.shape
    return results, shapes


def output(interpreter, k):
    """Value of an output. The interpreter does not give some empty tensors."""
    import numpy as np

    detail = interpreter.get_output_details()[k]
    if 0 in detail["shape"]:
        return np.empty(detail["shape"], detail["dtype"])
    return np.array(interpreter.get_tensor(detail["index"]))


def signature_runs(interpreter, signature, feeds, runs):
    """Runs a signature, given as its key and the names of its inputs and outputs in order."""
    import numpy as np

    key, inputs, outputs = signature
    runner = interpreter.get_signature_runner(key)
    results = []
    for _ in range(runs):
        answers = runner(**dict(zip(inputs, feeds, strict=True)))
        results.append([np.array(answers[name]) for name in outputs])
    return results


def serve(connection):
    """Answers requests until the pipe closes."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return
        try:
            connection.send((True, invoke(*request)))
        except Exception as error:  # Every error of LiteRT is an answer here.
            connection.send((False, " ".join(str(error).split())))


class Runner:
    """A worker process, started again after a crash. `fill` is the byte that fresh memory contains."""

    def __init__(self, fill):
        self.fill, self.process = fill, None

    def start(self):
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other,), daemon=True)
        os.environ["MALLOC_PERTURB_"] = str(self.fill)
        self.process.start()
        other.close()

    def run(self, content, feeds, kernels, runs=1, signature=None, seconds=60):
        """Returns (True, (outputs per run, shapes)) or (False, message)."""
        if self.process is None or not self.process.is_alive():
            self.start()
        try:
            self.connection.send((content, feeds, kernels, runs, signature))
            if self.connection.poll(seconds):
                return self.connection.recv()
            message = f"no answer in {seconds} s"
        except (EOFError, OSError):
            self.process.join(5)
            message = f"LiteRT crashed with exit code {self.process.exitcode}"
        self.process.kill()
        self.process = None
        return False, message
