#!/usr/bin/env python3
"""Creates smaller variants of the large models: the same layers over smaller images, shorter texts, and fewer repeats.

    PYTHON scripts/reduced_models.py ORACLE OUT NAME...       NAME: see --list

For emulators, in which the large ones take too long. ORACLE is the directory of make_models.py, whose layers, weights and
tolerances these are; PYTHON has TensorFlow 2.15 (`scripts/venv.sh tf` makes such a one). OUT gets graphs/NAME (graph.pb, config.pbtxt,
io.npz) and models/NAME, TensorFlow's answers as the oracle runner takes them: `oracle OUT models/NAME --models OUT/graphs`.
"""

import os
import subprocess
import sys
import types


def images(size):
    """Returns Keras with another input size, for builders with a fixed one."""
    return lambda K: types.SimpleNamespace(layers=K.layers, Model=K.Model, Input=lambda shape: K.Input((size, size, shape[-1])))


def keras(oracle):
    """Returns the builders of inference graphs: name -> (large model, builder)."""
    return {
        "mobilenet_v2_96": ("mobilenet_v2_224", lambda K: K.applications.MobileNetV2((96, 96, 3), weights=None)),
        "efficientnet_b0_96": ("efficientnet_b0_224", lambda K: K.applications.EfficientNetB0(input_shape=(96, 96, 3), weights=None)),
        "resnet50_64": ("resnet50_224", lambda K: K.applications.ResNet50(input_shape=(64, 64, 3), weights=None)),
        "inception_v3_107": ("inception_v3_299", lambda K: K.applications.InceptionV3(input_shape=(107, 107, 3), weights=None)),
        "unet_small_64": ("unet_small_128", lambda K: oracle.keras_unet(images(64)(K))),
    }


def modules(oracle):
    """Returns the builders of graphs that are not Keras models."""
    return {
        "bert_base_1x104": ("bert_base_128", lambda tf: oracle.bert(tf, 1, 768, 12, length=104)),
        "vit_tiny_2x96": ("vit_tiny_224", lambda tf: oracle.vit(tf, layers=2, size=96)),
    }


# Training steps: name -> (large model, batch).
TRAINING = {"resnet8_train_b4": ("resnet8_train_b32", 4)}


def smaller_batch(tf, batch):
    """Returns TensorFlow with another first size of placeholders."""
    v1 = types.SimpleNamespace(train=tf.compat.v1.train)
    v1.placeholder = lambda dtype, shape, name: tf.compat.v1.placeholder(dtype, (batch,) + tuple(shape)[1:], name=name)
    kept = {name: getattr(tf, name) for name in ("keras", "nn", "reduce_mean", "control_dependencies", "identity", "float32", "int32")}
    return types.SimpleNamespace(compat=types.SimpleNamespace(v1=v1), **kept)


def make(oracle, name, out):
    graphs, expected = os.path.join(out, "graphs"), os.path.join(out, "models")
    if name in TRAINING:
        large, batch = TRAINING[name]
        build = oracle.build_training
        oracle.build_training = lambda tf, _: build(smaller_batch(tf, batch), large)
        return oracle.make_training(name, graphs, expected)
    if name in keras(oracle):
        large, builder = keras(oracle)[name]
        _, rule, gains = oracle.KERAS[large]
        oracle.KERAS[name] = (builder, rule, gains)
        if large in oracle.HEAD:
            oracle.HEAD[name] = oracle.HEAD[large]
    else:
        large, builder = modules(oracle)[name]
        oracle.MODULES[name] = (builder, oracle.MODULES[large][1])
    return oracle.make_inference(name, graphs, expected)


def main():
    if sys.argv[1:] == ["--list"]:
        return print(*keras(None), *modules(None), *TRAINING, sep="\n")
    if len(sys.argv) < 4:
        raise SystemExit(__doc__)
    directory, out, names = sys.argv[1], sys.argv[2], sys.argv[3:]
    if len(names) > 1:
        # Separate processes, because training graphs require another TensorFlow.
        for name in names:
            subprocess.run([sys.executable, os.path.abspath(__file__), directory, out, name], check=True)
        return
    sys.path.insert(0, directory)
    import make_models as oracle

    make(oracle, names[0], out)


if __name__ == "__main__":
    main()
