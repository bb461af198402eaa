"""Makes graphs, checkpoints, and what TensorFlow's freeze_graph says to them.

    python make_freeze.py freeze [case ...]

Made with tensorflow-cpu==2.15.1. Each folder of `freeze` has the inputs, `flags` (freeze_graph's arguments, relative to the
folder), and either `frozen.pb` or `error`, the message.
"""

import os
import re
import shutil
import subprocess
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
out = sys.argv[1]


def record(name, folder, words):
    with open(os.path.join(folder, "flags"), "w") as file:
        file.write("\n".join(words) + "\n")
    run = [sys.executable, "-m", "tensorflow.python.tools.freeze_graph", "--output_graph=frozen.pb"] + words
    result = subprocess.run(run, cwd=folder, capture_output=True, text=True)
    if result.returncode == 0:
        print(name, "ok")
        return
    lines = [line for line in result.stderr.splitlines() if re.match(r"[\w.]+(Error|Exception): ", line)]
    unset = re.search(r"Attempting to use uninitialized value \w+", result.stderr)
    error = f"FailedPreconditionError: {unset[0]}" if unset else lines[-1]
    print(name, "ERROR", error)
    with open(os.path.join(folder, "error"), "w") as file:
        file.write(error + "\n")


class Case:
    """A graph in the making. What `build` returns is the output."""

    def __init__(self, name, build, *flags, version=2, saver=False, sharded=False, meta=False, text=False, resource=False,
                 v2_flow=False, write_saver=False, outputs="out", save=None, then=None, checkpoint="model", graph=True,
                 objects=False):
        if sys.argv[2:] and name not in sys.argv[2:]:
            return
        folder = os.path.join(out, name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        (tf1.enable_control_flow_v2 if v2_flow else tf1.disable_control_flow_v2)()
        config = tf1.ConfigProto(device_count={"CPU": 2})
        with tf1.Graph().as_default(), tf1.Session(config=config) as session:
            with tf1.variable_scope("", use_resource=resource):
                build()
            variables = tf1.global_variables()
            if save is not None:
                variables = [v for v in variables if v.op.name in save]
            session.run(tf1.global_variables_initializer())
            if variables:
                saved = tf1.train.Saver(variables, write_version=version, sharded=sharded)
                saved.save(session, os.path.join(folder, "model"), write_meta_graph=meta, write_state=False)
            graph_def = session.graph.as_graph_def()
            if objects:
                tf.train.Checkpoint(**{f"v{i}": v for i, v in enumerate(variables)}).save(os.path.join(folder, "objects"))
            if then is not None:
                with tf1.Graph().as_default() as other:
                    then()
                    graph_def = other.as_graph_def()
            if graph:
                tf.io.write_graph(graph_def, folder, "graph.pbtxt" if text else "graph.pb", as_text=text)
            if write_saver:
                with open(os.path.join(folder, "saver.pb"), "wb") as file:
                    file.write(saved.as_saver_def().SerializeToString())
        words = []
        if graph:
            words += [f"--input_graph=graph.{'pbtxt' if text else 'pb'}"]
        if not text:
            words += ["--input_binary=true"]
        words += [f"--checkpoint_version={version}"]
        if checkpoint:
            words += [f"--input_checkpoint={checkpoint}"]
        if outputs:
            words += [f"--output_node_names={outputs}"]
        if write_saver:
            words += ["--input_saver=saver.pb"]
        if meta:
            words += ["--input_meta_graph=model.meta"]
        words += list(flags)
        record(name, folder, words)
        if objects:
            # What the saver's checkpoint gave is what the objects' must give.
            with open(os.path.join(folder, "flags"), "w") as file:
                words = [w for w in words if not w.startswith(("--input_saver", "--input_checkpoint"))]
                file.write("\n".join(words + ["--input_checkpoint=objects-1"]) + "\n")
            for extra in ["saver.pb", "model.index", "model.data-00000-of-00001", "checkpoint"]:
                os.remove(os.path.join(folder, extra))


def x(shape=(2, 3)):
    return tf1.placeholder(tf.float32, shape, "x")


def dense():
    w = tf1.get_variable("layer/kernel", initializer=np.arange(12, dtype=np.float32).reshape(3, 4))
    b = tf1.get_variable("layer/bias", initializer=np.float32([0.5]))
    s = tf1.get_variable("scale", initializer=np.float32(2))
    tf.add(tf.matmul(x(), w) * s, b, name="out")


def types():
    total = []
    for name in ["float16", "bfloat16", "float64", "int32", "int64", "uint8", "bool", "complex64"]:
        dtype = tf.as_dtype(name)
        for size in [1, 3]:
            value = np.arange(2, 2 + size).astype(dtype.as_numpy_dtype)
            v = tf1.get_variable(f"{name}_{size}", initializer=tf.constant(value, dtype))
            total.append(tf.reduce_sum(tf.abs(tf.cast(v, tf.complex64))))
    tf.add_n(total, name="out")


def partitioned():
    with tf1.variable_scope("p", partitioner=tf1.fixed_size_partitioner(2)):
        w = tf1.get_variable("w", (3, 4), initializer=tf1.random_uniform_initializer(seed=1))
        tf.matmul(x(), tf.convert_to_tensor(w), name="out")


def gathers():
    table = tf1.get_variable("table", initializer=np.arange(12, dtype=np.float32).reshape(4, 3))
    ids = tf1.placeholder(tf.int64, [2], "ids")
    a = tf.gather(table, ids)
    b = tf.gather_nd(table, [[0, 1], [3, 2]])
    tf.add(tf.reduce_sum(a), tf.reduce_sum(b), name="out")


def loop():
    w = tf1.get_variable("w", initializer=np.eye(3, dtype=np.float32) * 2)
    n = tf1.get_variable("n", initializer=np.int32(3))
    _, y = tf1.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, tf.matmul(y, w)), [0, x()])
    tf.identity(y, name="out")


def branches():
    w = tf1.get_variable("w", initializer=np.eye(3, dtype=np.float32) * 2)
    v = tf1.get_variable("v", initializer=np.eye(3, dtype=np.float32) * 5)
    value = x()
    y = tf1.cond(tf.reduce_sum(value) > 0, lambda: tf.matmul(value, w), lambda: tf.matmul(value, w + v))
    index = tf1.placeholder(tf.int32, [], "index")
    z = tf.switch_case(index, [lambda: tf.matmul(y, v), lambda: y, lambda: tf.matmul(y, w)])
    tf.identity(z, name="out")


def calls():
    w = tf1.get_variable("w", initializer=np.eye(3, dtype=np.float32) * 2)

    @tf.function(autograph=False)
    def inner(value):
        return tf.matmul(value, w) + 1

    @tf.function(autograph=False)
    def outer(value):
        return inner(inner(value)) * w[0, 0]

    tf.identity(outer(x()), name="out")


def two_initialized():
    w = tf1.get_variable("w", initializer=np.float32([1, 2, 3]))
    v = tf1.get_variable("v", initializer=tf.fill([3], 4.0))
    u = tf1.get_variable("u", initializer=tf.zeros_like(w.initialized_value()))
    tf1.assign(u, u * 0, name="unused")
    tf.add(x() * w, u + v, name="out")


def devices():
    with tf1.device("/cpu:0"):
        dense()


def shards():
    w = []
    for i in range(2):
        with tf1.device(f"/cpu:{i}"):
            w.append(tf1.get_variable(f"w{i}", initializer=np.float32([1, 2, 3]) + i))
    tf.add(x() * w[0], w[1], name="out")


def constants():
    w = tf.constant([1.0, 2, 3], name="w")
    tf.add(x(), w, name="out")


def written():
    w = tf1.get_variable("w", initializer=np.float32([1, 2, 3]))
    tf.multiply(tf1.assign(w, w * 2), x(), name="out")


Case("reference", dense)
Case("reference_text", dense, text=True)
Case("reference_v1", dense, version=1)
Case("reference_saver", dense, write_saver=True)
Case("resource", dense, resource=True)
Case("resource_saver", dense, resource=True, write_saver=True)
Case("resource_v1_saver", dense, resource=True, write_saver=True, version=1)
Case("meta", dense, resource=True, meta=True, graph=False)
Case("meta_reference", dense, meta=True, graph=False)
Case("types", types)
Case("types_saver", types, resource=True, write_saver=True)
Case("partitioned", partitioned, outputs="p/out")
Case("partitioned_saver", partitioned, write_saver=True, outputs="p/out")
Case("partitioned_resource", partitioned, resource=True, write_saver=True, outputs="p/out")
Case("partitioned_v1", partitioned, write_saver=True, version=1, outputs="p/out")
Case("gathers", gathers, resource=True, write_saver=True)
Case("gathers_reference", gathers)
Case("loop_v1", loop, resource=True, write_saver=True)
Case("loop_v1_reference", loop)
Case("loop_v2", loop, resource=True, write_saver=True, v2_flow=True)
Case("branches_v1", branches, resource=True, write_saver=True)
Case("branches_v2", branches, resource=True, write_saver=True, v2_flow=True)
Case("calls", calls, resource=True, write_saver=True, v2_flow=True)
Case("whitelist", dense, "--variable_names_whitelist=scale, layer/bias")
Case("denylist", dense, "--variable_names_denylist=scale", resource=True, write_saver=True)
Case("initializers", two_initialized, "--initializer_nodes=v/Assign,u/Assign", save=["w"])
Case("uninitialized", two_initialized, save=["w"])
Case("devices_kept", devices, "--clear_devices=false")
Case("devices", devices)
Case("shards", shards, write_saver=True, sharded=True)
Case("shards_v1", shards, write_saver=True, sharded=True, version=1, checkpoint="model-?????-of-00002")
Case("shards_names", shards, sharded=True)
Case("frozen_before", lambda: tf1.get_variable("w", initializer=np.float32([1, 2, 3])), then=constants)
Case("written", written)
Case("no_checkpoint", dense, checkpoint=None)
Case("other_checkpoint", dense, checkpoint="other")
Case("no_outputs", dense, outputs=None)
Case("other_output", dense, outputs="other")
Case("two_outputs", dense, outputs="MatMul, out")
Case("output_of_node", dense, outputs="out:0")
Case("version_3", dense, "--checkpoint_version=3")
Case("no_graph", dense, "--input_graph=missing.pb", graph=False)
Case("no_saver", dense, "--input_saver=missing.pb")
Case("no_meta", dense, "--input_meta_graph=missing.pb")
Case("bare_switches", dense, "--clear_devices", "--input_binary")


Case("objects", dense, resource=True, write_saver=True, objects=True)
Case("objects_in_functions", calls, resource=True, write_saver=True, v2_flow=True, objects=True)


class SavedModelCase:
    """A SavedModel that `save` writes."""

    def __init__(self, name, save, *flags):
        if sys.argv[2:] and name not in sys.argv[2:]:
            return
        folder = os.path.join(out, name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        save(os.path.join(folder, "model"))
        record(name, folder, ["--input_saved_model_dir=model"] + list(flags))


def saved_v1(folder, parts=1):
    with tf1.Graph().as_default(), tf1.Session() as session:
        partitioner = tf1.fixed_size_partitioner(parts) if parts > 1 else None
        with tf1.variable_scope("p", partitioner=partitioner):
            w = tf1.get_variable("w", (3, 4), initializer=tf1.random_uniform_initializer(seed=1))
            tf.matmul(x(), tf.convert_to_tensor(w), name="out")
        session.run(tf1.global_variables_initializer())
        builder = tf1.saved_model.Builder(folder)
        builder.add_meta_graph_and_variables(session, ["serve", "other"])
        builder.save()


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(np.arange(12, dtype=np.float32).reshape(3, 4), name="w")
        self.table = tf.Variable(np.arange(8, dtype=np.float32).reshape(2, 4), name="table")
        self.times = tf.Variable(2, name="times")

    @tf.function(input_signature=[tf.TensorSpec([2, 3], tf.float32)])
    def __call__(self, value):
        y = tf.matmul(value, self.w)
        for _ in tf.range(self.times):
            y = y * 2 if tf.reduce_sum(y) < 100 else y + self.table[0]
        return y


tags = "--saved_model_tags=serve,other"
SavedModelCase("saved_v1", saved_v1, "--output_node_names=p/out", tags)
SavedModelCase("saved_v1_partitioned", lambda folder: saved_v1(folder, 2), "--output_node_names=p/out", tags)
SavedModelCase("saved_tags", saved_v1, "--output_node_names=p/out")
SavedModelCase("saved_none", lambda folder: None, "--output_node_names=p/out")
tf1.enable_control_flow_v2()
SavedModelCase("saved_v2", lambda folder: tf.saved_model.save(Net(), folder), "--output_node_names=StatefulPartitionedCall")
