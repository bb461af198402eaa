"""Makes the checkpoints of this directory and, in expected.txt, what TensorFlow reads from them.

    python make_checkpoints.py checkpoints

Made with tensorflow-cpu==2.15.1. A line of expected.txt is: folder, path, tensor, type, shape (or -), bytes in
hexadecimal; strings stand as their bytes, joined by commas.
"""

import os
import shutil
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
out = sys.argv[1]
lines = []


def begin(name):
    folder = os.path.join(out, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    return folder


def record(name, prefix):
    folder = os.path.join(out, name)
    reader = tf.train.load_checkpoint(os.path.join(folder, prefix))
    types = reader.get_variable_to_dtype_map()
    for key, shape in sorted(reader.get_variable_to_shape_map().items()):
        try:
            value = reader.get_tensor(key)
        except tf.errors.UnimplementedError:
            value = tf.raw_ops.Restore(file_pattern=os.path.join(folder, prefix), tensor_name=key, dt=types[key]).numpy()
        if types[key] == tf.string:
            data = b",".join(np.asarray(value, object).reshape(-1).tolist()).hex()
            if key == "_CHECKPOINTABLE_OBJECT_GRAPH":
                continue
        else:
            data = np.asarray(value).tobytes().hex()
        sizes = ",".join(map(str, shape)) or "-"
        lines.append(f"{name} {prefix} {key} {types[key].name} {sizes} {data or '-'}")
    path = os.path.join(folder, "checkpoint")
    if os.path.exists(path):
        os.remove(path)


def values(types):
    rng = np.random.RandomState(7)
    for name in types:
        dtype = tf.as_dtype(name)
        if name == "string":
            yield name, np.array([b"", b"one", b"\x00\xff two"], object), dtype
        elif name == "bool":
            yield name, np.array([[True, False, True]]), dtype
        elif name.startswith("complex"):
            x = rng.standard_normal((2, 2)) + 1j * rng.standard_normal((2, 2))
            yield name, x.astype(dtype.as_numpy_dtype), dtype
        else:
            yield name, (rng.standard_normal((2, 3)) * 40 + 50).astype(dtype.as_numpy_dtype), dtype
    yield "scalar/of float", np.float32(2.5), tf.float32
    yield "empty", np.zeros((2, 0), np.float32), tf.float32


V2_TYPES = ["float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16",
            "uint32", "uint64", "bool", "complex64", "complex128", "string"]
V1_TYPES = ["float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool", "complex64", "complex128",
            "string", "float16"]

for name, version, types in [("v2", 2, V2_TYPES), ("v1", 1, V1_TYPES)]:
    folder = begin(name)
    with tf1.Graph().as_default(), tf1.Session() as session:
        tensors = {n.replace(" ", "_"): tf1.Variable(tf1.constant(v, t), use_resource=False)
                   for n, v, t in values(types)}
        saver = tf1.train.Saver(tensors, write_version=version)
        session.run(tf1.global_variables_initializer())
        saver.save(session, os.path.join(folder, "model"), write_meta_graph=False)
    record(name, "model")

for name, version in [("v2_sharded", 2), ("v1_sharded", 1)]:
    folder = begin(name)
    config = tf1.ConfigProto(device_count={"CPU": 3})
    with tf1.Graph().as_default(), tf1.Session(config=config) as session:
        for i in range(3):
            with tf1.device(f"/cpu:{i}"):
                tf1.get_variable(f"layer{i}/kernel", initializer=np.arange(6, dtype=np.float32).reshape(2, 3) + i)
                tf1.get_variable(f"layer{i}/steps", initializer=np.int64(i))
        saver = tf1.train.Saver(sharded=True, write_version=version)
        session.run(tf1.global_variables_initializer())
        saver.save(session, os.path.join(folder, "model"), write_meta_graph=False)
    record(name, "model" if version == 2 else "model-?????-of-00003")

for name, version in [("v2_partitioned", 2), ("v1_partitioned", 1)]:
    folder = begin(name)
    with tf1.Graph().as_default(), tf1.Session() as session:
        for axis, shape, parts in [(0, (200, 2), 3), (1, (3, 5), 2)]:
            with tf1.variable_scope(f"axis{axis}", partitioner=tf1.fixed_size_partitioner(parts, axis=axis)):
                tf1.get_variable("weights", shape, initializer=tf1.random_uniform_initializer(seed=3))
        tf1.get_variable("whole", initializer=np.float32([1, 2, 3]))
        saver = tf1.train.Saver(write_version=version)
        session.run(tf1.global_variables_initializer())
        saver.save(session, os.path.join(folder, "model"), write_meta_graph=False)
    record(name, "model")


class Net(tf.Module):
    def __init__(self):
        super().__init__("net")
        self.layers = [tf.Variable([[1.0, 2.0]], name="kernel"), tf.Variable([0.5], name="bias/inner")]
        self.counter = tf.Variable(3, name="counter")


folder = begin("objects")
net = Net()
optimizer = tf.keras.optimizers.legacy.Adam(0.125)
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(net.layers[0]) * net.layers[1][0]
optimizer.apply_gradients(zip(tape.gradient(loss, net.layers), net.layers))
tf.train.Checkpoint(net=net, optimizer=optimizer).write(os.path.join(folder, "model"))
record("objects", "model")

folder = begin("keras")
tf.keras.utils.set_random_seed(5)
model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(3,)), tf.keras.layers.BatchNormalization()])
model.save_weights(os.path.join(folder, "weights"), save_format="tf")
record("keras", "weights")

with open(os.path.join(out, "expected.txt"), "w") as file:
    file.write("\n".join(lines) + "\n")
