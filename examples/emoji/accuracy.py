"""Measures the accuracy of the networks that train.py wrote, in all forms that the tool offers.

    accuracy.py TOOL DIR [--only REGEX]

For each form, the tool compiles the network, and classify.cc runs it on the test images. Needs a C++ compiler and
TensorFlow 2.15, whose LiteRT runs the converter's network, too. Prints a table in Markdown: accuracy, images with the
class of float32, and the error of the probabilities relative to them, both as root mean squares.
"""

import argparse
import os
import pathlib
import re
import subprocess

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
DATA = "--data=calibration.npz"
INT8 = ["--quantize=int8", DATA]
FORMS = {
    "float32": ["float.tflite"],
    "bf16": ["float.tflite", "--precision=bf16"],
    "weights in bf16": ["float.tflite", "--quantize=bf16-weights"],
    "weights in int8": ["float.tflite", "--quantize=int8-weights"],
    "weights in int4": ["float.tflite", "--quantize=int4-weights"],
    "int8, converter": ["converter.tflite"],
}
for method in ("min-max", "percentile", "entropy", "mse"):
    for label, flags in (("", []), (", equalized", ["--equalize"]), (", no bias correction", ["--no-bias-correction"])):
        FORMS[f"int8, {method}{label}"] = ["float.tflite", *INT8, f"--method={method}", "--no-layer-errors", *flags]
FORMS["int8, error at most 0.01"] = ["float.tflite", *INT8, "--max-error=0.01"]


def compiled(tool, directory, model, flags):
    """Probabilities that a compiled network computes."""
    out = directory / "compiled"
    run = lambda *command: subprocess.run([str(word) for word in command], cwd=directory, check=True)
    run(tool, "build", model, *flags, "--name=network", "--class=Network", "--quiet", "-o", out)
    flags = ["-std=c++17", "-O2", "-I", out, "-I", out / "include"]
    run("c++", *flags, HERE / "classify.cc", out / "network.o", "-o", out / "classify")
    run(out / "classify", "images.f32", out / "probabilities.f32")
    return np.fromfile(out / "probabilities.f32", np.float32)


def litert(directory):
    """Probabilities that LiteRT computes for the converter's network."""
    import tensorflow as tf

    interpreter = tf.lite.Interpreter(str(directory / "converter.tflite"))
    interpreter.allocate_tensors()
    (argument,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
    probabilities = []
    for image in np.fromfile(directory / "images.f32", np.float32).reshape(-1, *argument["shape"]):
        interpreter.set_tensor(argument["index"], image)
        interpreter.invoke()
        probabilities.append(interpreter.get_tensor(result["index"]).reshape(-1))
    return np.concatenate(probabilities)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", type=pathlib.Path)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--only", default="", help="regular expression of the forms to measure")
    arguments = parser.parse_args()
    tool, directory = arguments.tool.absolute(), arguments.directory.absolute()
    labels = np.fromfile(directory / "labels.s32", np.int32)
    reference = compiled(tool, directory, *FORMS["float32"][:1], []).reshape(len(labels), -1)

    def report(form, probabilities):
        probabilities = probabilities.reshape(reference.shape)
        classes = probabilities.argmax(1)
        right, same = (classes == labels).mean(), (classes == reference.argmax(1)).mean()
        error = np.sqrt(((probabilities - reference) ** 2).mean() / (reference**2).mean())
        print(f"| {form} | {right:.2%} | {same:.2%} | {error:.4f} |", flush=True)

    print("| form | accuracy | same class as float32 | relative error |\n|---|---:|---:|---:|")
    for form, (model, *flags) in FORMS.items():
        if re.search(arguments.only, form):
            report(form, compiled(tool, directory, model, flags))
    if re.search(arguments.only, "int8, converter, LiteRT"):
        report("int8, converter, LiteRT", litert(directory))


if __name__ == "__main__":
    main()
