"""Converts a layers model of TensorFlow.js, which holds layers of Keras, to a SavedModel.

    layers_model.py MODEL.json DIR

Feeds are x0, x1, ... and fetches y0, y1, ..., in the order of the model.
"""

import json
import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
import numpy as np
import tensorflow as tf


def weights(model, folder):
    """Arrays of the weights by name."""
    arrays = {}
    for group in model["weightsManifest"]:
        content = b"".join((folder / path).read_bytes() for path in group["paths"])
        for weight in group["weights"]:
            coding = weight.get("quantization", {})
            dtype = np.dtype(coding.get("dtype", weight["dtype"]))
            count = int(np.prod(weight["shape"], dtype=np.int64))
            values = np.frombuffer(content, dtype, count)
            if "scale" in coding:
                values = values.astype(np.float64) * coding["scale"] + coding["min"]
            arrays[weight["name"]] = values.reshape(weight["shape"]).astype(weight["dtype"])
            content = content[count * dtype.itemsize :]
    return arrays


def main():
    path, out = pathlib.Path(sys.argv[1]), sys.argv[2]
    described = json.loads(path.read_text())
    config = described["modelTopology"]["model_config"]
    kinds = {"Model": "Functional"}
    config = {**config, "class_name": kinds.get(config["class_name"], config["class_name"])}
    model = tf.keras.models.model_from_json(json.dumps(config))
    arrays = weights(described, path.parent)
    for variable in model.weights:
        variable.assign(arrays.pop(variable.name.removesuffix(":0")))
    if arrays:
        sys.exit(f"the network has no variables {', '.join(sorted(arrays))}")
    specs = [tf.TensorSpec(tensor.shape, tensor.dtype, f"x{k}") for k, tensor in enumerate(model.inputs)]

    @tf.function(input_signature=specs)
    def call(*inputs):
        return {f"y{k}": y for k, y in enumerate(tf.nest.flatten(model(list(inputs), training=False)))}

    tf.saved_model.save(model, out, signatures=call)


if __name__ == "__main__":
    main()
