"""A model repository for the tests: compiled from tests/saved_models and tests/triton/models."""

import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAVED = ROOT / "tests/saved_models"
OWN = ROOT / "tests/triton/models"

# Name, model, flags, configuration beside the backend.
MODELS = [
    ("keras2", SAVED / "keras2", ["--constants=file"], ""),
    ("keras3", SAVED / "keras3", [], 'parameters { key: "threads" value { string_value: "2" } }'),
    ("module", SAVED / "module", [], "instance_group { count: 2 kind: KIND_CPU }"),
    ("branches", SAVED / "flow", ["--signature=branches"], ""),
    ("types", OWN / "types.mlir", [], ""),
    # The user says that the rows are independent.
    ("types_batched", OWN / "types.mlir", [], "max_batch_size: 8"),
    ("softmax", OWN / "softmax.pbtxt", ["--fetch=y", "--dim=batch=1..8", "--dim=x.1=1..16"], ""),
    ("softmax_batched", OWN / "softmax.pbtxt", ["--fetch=y", "--dim=batch=1..8", "--dim=x.1=1..16"],
     "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 20000 }"),
    ("positive", OWN / "positive.pbtxt", ["--fetch=y", "--assert=report"],
     "max_batch_size: 16 dynamic_batching { max_queue_delay_microseconds: 50000 }"),
    ("total", OWN / "total.pbtxt", ["--fetch=total_out"],
     """max_batch_size: 8 output { name: "total_out" data_type: TYPE_FP32 dims: [ 2 ] } sequence_batching {
       oldest { max_candidate_sequences: 8 }
       state { input_name: "total_in" output_name: "total_out" data_type: TYPE_FP32 dims: [ 2 ]
         initial_state { name: "zero" data_type: TYPE_FP32 dims: [ 2 ] zero_data: true } } }"""),
]

# On an OpenCL driver for processors, if there is one.
GPU_MODELS = [("gpu", SAVED / "keras2", ["--dim=batch=4", "--target=opencl", "--constants=file"], "max_batch_size: 4")]


def all_models():
    return MODELS + (GPU_MODELS if "OCL_ICD_VENDORS" in os.environ else [])


def build(tool, model, flags, folder, name):
    """Compiles a model to a shared library in a directory."""
    command = [tool, "build", "--quiet", model, "--emit=shared", f"--name={name}", "-o", folder, *flags]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def configure(repository, name, text):
    (repository / name).mkdir(parents=True, exist_ok=True)
    (repository / name / "config.pbtxt").write_text(f'backend: "tfcompile"\n{text}\n')


def write(tool, repository):
    """Writes the repository."""
    shutil.rmtree(repository, ignore_errors=True)
    for name, model, flags, text in all_models():
        build(tool, model, flags, repository / name / "1", name)
        configure(repository, name, text)
