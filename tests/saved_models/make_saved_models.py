"""Makes small models as TensorFlow and Keras export them, and what TensorFlow says to them.

    python make_saved_models.py .            # with tensorflow-cpu==2.15.1: all but keras3
    python make_saved_models.py . keras3     # with tensorflow-cpu==2.21.0, keras==3.15.1

`<model>/` is what was exported, without parts that only Python reads (the op list, the graph of objects, configurations of
calls), which are most of a small model's bytes. `<model>.npz` has inputs and answers: `<signature>/in/<name>`,
`<signature>/out/<name>`.
"""

import os
import shutil
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import numpy as np
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.protobuf import saved_model_pb2

tf1 = tf.compat.v1
out = sys.argv[1]
rng = np.random.default_rng(7)


def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def place(name):
    folder = os.path.join(out, name)
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def strip(folder):
    """Drops what no compiler reads, and files that describe the model to Python."""
    for file, text in (("saved_model.pb", False), ("saved_model.pbtxt", True)):
        path = os.path.join(folder, file)
        if not os.path.exists(path):
            continue
        model = saved_model_pb2.SavedModel()
        data = open(path, "rb").read()
        text_format.Parse(data, model) if text else model.ParseFromString(data)
        for meta in model.meta_graphs:
            meta.meta_info_def.ClearField("stripped_op_list")
            meta.ClearField("object_graph_def")
            functions = meta.graph_def.library.function
            bodies = [meta.graph_def.node] + [f.node_def for f in functions]
            for function in functions:
                for name in list(function.attr):
                    del function.attr[name]
                function.ClearField("arg_attr")
            for node in (node for nodes in bodies for node in nodes):
                node.ClearField("experimental_debug_info")
                for name in ("config_proto", "_collective_manager_ids", "_output_shapes", "_construction_context"):
                    node.attr.pop(name, None)
        with open(path, "wb") as file:
            file.write(text_format.MessageToBytes(model) if text else model.SerializeToString(deterministic=True))
    for file in ("fingerprint.pb", "keras_metadata.pb"):
        if os.path.exists(os.path.join(folder, file)):
            os.remove(os.path.join(folder, file))


def record(name, inputs):
    """Runs signatures of a model on inputs, each in a fresh copy of it."""
    members = {}
    for signature, arrays in inputs.items():
        model = tf.saved_model.load(os.path.join(out, name))
        answers = model.signatures[signature](**{k: tf.constant(v) for k, v in arrays.items()})
        members.update({f"{signature}/in/{k}": v for k, v in arrays.items()})
        members.update({f"{signature}/out/{k}": v.numpy() for k, v in answers.items()})
    np.savez_compressed(os.path.join(out, name + ".npz"), **members)


def export(name, model, signatures, inputs):
    folder = place(name)
    tf.saved_model.save(model, folder, signatures=signatures)
    record(name, inputs)
    strip(folder)


class Module(tf.Module):
    """Variables of one name, a captured constant, updates, several signatures."""

    def __init__(self):
        self.scale = tf.Variable([1.5, -2.0, 0.5], name="v")
        self.offset = tf.Variable([10.0, 20.0, 30.0], name="v")
        self.count = tf.Variable(5, dtype=tf.int64, name="count")
        self.constant = tf.constant([0.25, 0.5, 0.75])

    @tf.function(input_signature=[tf.TensorSpec([None, 3], name="x"), tf.TensorSpec([None, 3], name="b/bias")])
    def affine(self, x, bias):
        y = x * self.scale + self.offset + self.constant + bias
        return {"y": y, "sum": tf.reduce_sum(y, 1)}

    @tf.function(input_signature=[tf.TensorSpec([3], name="delta")])
    def update(self, delta):
        self.scale.assign_sub(delta)
        self.count.assign_add(2)
        return {"scale": self.scale.read_value(), "count": self.count.read_value()}


def module():
    model = Module()
    signatures = {"serving_default": model.affine, "update": model.update}
    export("module", model, signatures, {
        "serving_default": {"x": f32(2, 3), "b/bias": f32(2, 3)},
        "update": {"delta": f32(3)},
    })


class Flow(tf.Module):
    """Variables that branches, loops and calls in them read."""

    def __init__(self):
        self.w = tf.Variable(f32(3, 3), name="w")
        self.table = tf.Variable(f32(5, 3), name="table")

    @tf.function(input_signature=[tf.TensorSpec([2, 3], name="x"), tf.TensorSpec([], tf.int32, name="k")])
    def branches(self, x, k):
        y = tf.cond(k > 1, lambda: x @ self.w, lambda: tf.gather(self.table, [k, k + 1]))
        z = tf.switch_case(k % 3, [lambda: y + 1.0, lambda: y @ self.w, lambda: y * self.table[0]])
        return {"y": y, "z": z, "shape": tf.shape(self.table)}

    @tf.function(input_signature=[tf.TensorSpec([2, 3], name="x")])
    def loop(self, x):
        for _ in tf.range(4):
            x = tf.tanh(x @ self.w) + self.table[1]
        return {"y": x}


def flow():
    model = Flow()
    export("flow", model, {"branches": model.branches, "loop": model.loop}, {
        "branches": {"x": f32(2, 3), "k": np.int32(1)},
        "loop": {"x": f32(2, 3)},
    })


class Tables(tf.Module):
    """Static tables: keys that follow one another, keys that do not, one in a file, one of strings."""

    def __init__(self, file):
        table, fill = tf.lookup.StaticHashTable, tf.lookup.KeyValueTensorInitializer
        self.dense = table(fill(tf.range(4, 9), tf.constant([0.5, 1.5, 2.5, 3.5, 4.5])), -1.0)
        keys = tf.constant([-(2**62), -7, 0, 3, 11, 2**62], tf.int64)
        self.sparse = table(fill(keys, tf.constant([6, 5, 4, 3, 2, 1], tf.int64)), -2)
        self.file = table(tf.lookup.TextFileInitializer(file, tf.int64, 0, tf.float32, 1, delimiter=","), 0.0)
        self.words = table(fill(tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64)), 0)

    @tf.function(input_signature=[tf.TensorSpec([2, None], tf.int64, name="keys")])
    def find(self, keys):
        return {
            "dense": self.dense.lookup(tf.cast(keys, tf.int32)),
            "sparse": self.sparse.lookup(keys),
            "file": tf.cond(keys[0, 0] > 0, lambda: self.file.lookup(keys), lambda: self.file.lookup(-keys)),
            "size": self.sparse.size(),
        }

    @tf.function(input_signature=[tf.TensorSpec([2], tf.int64, name="keys")])
    def strings(self, keys):
        return {"y": self.words.lookup(tf.constant(["b", "c"])) + keys}


def tables():
    file = os.path.join(out, "entries.csv")
    with open(file, "w") as f:
        f.write("7,0.125\n-3,1.25\n11,2.5\n")
    model = Tables(file)
    export("tables", model, {"find": model.find, "strings": model.strings}, {
        "find": {"keys": np.array([[3, 4, 7, 8], [9, -7, 11, -(2**62)]], np.int64)},
    })
    os.remove(file)


def keras2():
    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(3)
    inputs = tf.keras.Input((4,), name="features")
    hidden = layers.BatchNormalization()(layers.Dense(5, activation="relu")(inputs))
    model = tf.keras.Model(inputs, [layers.Dense(2, name="p")(layers.Dropout(0.5)(hidden)), layers.Dense(1, name="q")(hidden)])
    for weight in model.weights:
        weight.assign(tf.abs(f32(*weight.shape)))
    folder = place("keras2")
    model.export(folder)
    record("keras2", {"serving_default": {"features": f32(3, 4)}})
    strip(folder)


def keras3():
    import keras

    keras.utils.set_random_seed(3)
    layers = keras.layers
    model = keras.Sequential([keras.Input((5, 3), name="frames"), layers.LSTM(4), layers.Dense(2, activation="softmax")])
    folder = place("keras3")
    model.export(folder, verbose=False)
    record("keras3", {"serving_default": {"frames": f32(2, 5, 3)}})
    strip(folder)


def builder():
    """TensorFlow 1: two graphs with tags, a variable in parts, one of references, a table, as text."""
    with tf1.Graph().as_default(), tf1.Session() as session:
        x = tf1.placeholder(tf.int64, [None], name="x")
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(tf.constant([3, 9], tf.int64), tf.constant([1.5, 2.5])), 0.25)
        w = tf1.get_variable("w", initializer=f32(4), use_resource=False)
        parts = tf1.get_variable("parts", [5, 4], initializer=tf1.random_normal_initializer(seed=1), use_resource=True,
                                 partitioner=tf1.fixed_size_partitioner(2))
        y = tf.expand_dims(table.lookup(x), 1) * w + tf.reduce_sum(tf.convert_to_tensor(parts), 0)
        z = tf1.identity(y - 1.0, name="z")
        y = tf1.identity(y, name="y")
        session.run([tf1.global_variables_initializer(), tf1.tables_initializer()])
        signature = tf1.saved_model.predict_signature_def
        folder = place("builder")
        saver = tf1.saved_model.Builder(folder)
        saver.add_meta_graph_and_variables(
            session, ["serve"], {"predict": signature({"x": x}, {"y": y})}, main_op=tf1.tables_initializer())
        saver.add_meta_graph(["serve", "debug"], {"predict": signature({"x": x}, {"z": z})})
        saver.save(as_text=True)
        given = np.array([9, 1, 3], np.int64)
        answers = session.run([y, z], {x: given})
        np.savez_compressed(os.path.join(out, "builder.npz"), **{
            "predict/in/x": given, "predict/out/y": answers[0], "debug/in/x": given, "debug/out/z": answers[1]})
        # The same as a MetaGraph with its checkpoint.
        folder = place("meta")
        os.makedirs(folder)
        tf1.train.Saver().save(session, os.path.join(folder, "model"))
        os.remove(os.path.join(folder, "checkpoint"))
    strip(os.path.join(out, "builder"))


class Open(tf.Module):
    """Sizes that follow from open ones, as transformers and dilated convolutions compute them."""

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, name="ids")])
    def windows(self, ids):
        """Windows of a padded text, of which every second word begins one, and a mask that marks no word."""
        rows, words = tf.shape(ids)[0], tf.shape(ids)[1]
        end = [[0, 0], [0, (4 - words % 4) % 4]]
        padded = tf.pad(ids, end, constant_values=1)
        count = tf.shape(padded)[1]
        x = tf.stack([tf.cast(padded, tf.float32), tf.sin(tf.cast(padded, tf.float32))], -1)
        pairs = tf.reshape(x, [rows, count // 2, 2, 2])
        joined = tf.concat([tf.signal.frame(x, 4, 2, axis=1), pairs[:, 1:]], axis=2)
        around = tf.reshape(tf.pad(x, [[0, 0], [2, 2], [0, 0]]), [rows, -1])
        hop = ((count + 4) * 2 - 12) // (count // 2 - 1)
        frames = tf.signal.frame(around, 12, hop)
        mask = tf.pad(tf.fill([rows, words], 1), end) > 1
        marked = tf.where(mask)
        sums = tf.tensor_scatter_nd_update(tf.reduce_sum(x, -1), marked, tf.gather_nd(tf.reduce_max(x, -1), marked))
        chosen = tf.cond(tf.reduce_any(mask), lambda: frames[:, :, 0], lambda: frames)
        return {"joined": joined, "frames": chosen, "sums": sums[:, :words]}

    @tf.function(input_signature=[tf.TensorSpec([None, 2], name="x")])
    def positions(self, x):
        """Ranges between positions of a text that is pooled twice, the first word apart."""
        place = tf.range(0, tf.shape(x)[0])
        results = {"sum": tf.reduce_sum(x, 1)}
        for k in (1, 2):
            pooled = tf.concat([tf.constant([1 - 2**k]), place[1:-1][::2]], 0)
            low, high = pooled[0] - place[-1], pooled[0] - place[0] + 2 ** k * tf.shape(pooled)[0]
            results[f"distances{k}"] = tf.range(high, low - 1, -(2**k))
            place = pooled
        return results

    @tf.function(input_signature=[tf.TensorSpec([None, 4, 4, 3], name="x")])
    def tiles(self, x):
        """Tiles of images, and the images of tiles, whose number is a quotient in float64."""
        tiles = tf.transpose(tf.reshape(x, [-1, 2, 2, 2, 2, 3]), [0, 1, 3, 2, 4, 5])
        tiles = tf.tanh(tf.reshape(tiles, [-1, 2, 2, 3]))
        images = tf.shape(tiles)[0] // tf.cast(tf.shape(x)[1] * tf.shape(x)[2] / 4, tf.int32)
        y = tf.transpose(tf.reshape(tiles, [images, 2, 2, 2, 2, -1]), [0, 1, 3, 2, 4, 5])
        return {"y": tf.reshape(y, [images, 4, 4, -1])}

    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 2], name="x")])
    def dilated(self, x):
        """Dilated convolutions with and without padding, and blocks of pixels in the batch."""
        kernel = tf.reshape(tf.range(18.0) - 8.0, [3, 3, 2, 1]) / 10
        padded = tf.nn.depthwise_conv2d(x, kernel, [1, 1, 1, 1], "SAME", dilations=[2, 3])
        valid = tf.nn.convolution(tf.pad(x, [[0, 0], [4, 1], [2, 2], [0, 0]]), tf.reshape(kernel, [3, 3, 2, 1]), 1, "VALID", dilations=2)
        blocks = tf.space_to_batch(tf.concat([x, x], 1), [2, 1], [[0, 0], [1, 1]])
        back = tf.batch_to_space(blocks, [2, 1], [[1, 0], [1, 0]])
        return {"padded": padded, "valid": valid, "blocks": blocks, "back": back}


def open_sizes():
    model = Open()
    x = lambda n, high, wide: f32(n, high, wide, 2)
    runs = {
        "windows": [{"ids": rng.integers(0, 9, (rows, words), np.int32)} for rows, words in ((1, 1), (3, 6), (2, 8), (4, 13))],
        "positions": [{"x": f32(words, 2)} for words in (3, 4, 9, 16)],
        "tiles": [{"x": f32(n, 4, 4, 3)} for n in (1, 2, 5)],
        "dilated": [{"x": x(*sizes)} for sizes in ((1, 1, 1), (2, 5, 4), (3, 8, 9))],
    }
    tf.saved_model.save(model, place("open"), signatures={name: getattr(model, name) for name in runs})
    loaded = tf.saved_model.load(os.path.join(out, "open"))
    members = {}
    for name, feeds in runs.items():
        for k, arrays in enumerate(feeds):
            answers = loaded.signatures[name](**{key: tf.constant(value) for key, value in arrays.items()})
            members.update({f"{name}.{k}/in/{key}": value for key, value in arrays.items()})
            members.update({f"{name}.{k}/out/{key}": value.numpy() for key, value in answers.items()})
    np.savez_compressed(os.path.join(out, "open.npz"), **members)
    strip(os.path.join(out, "open"))


def arrays():
    """TensorFlow 1: recurrent layers over texts of any length, each of its own, whose steps are in tensor arrays."""
    tf1.disable_control_flow_v2()
    with tf1.Graph().as_default(), tf1.Session() as session:
        x = tf1.placeholder(tf.float32, [None, None, 3], name="x")
        lengths = tf1.placeholder(tf.int32, [None], name="lengths")
        cell = tf1.nn.rnn_cell.BasicRNNCell(4)
        y, state = tf1.nn.dynamic_rnn(cell, x, sequence_length=lengths, dtype=tf.float32)
        words = tf.shape(x)[1]
        steps = tf.TensorArray(tf.float32, words).unstack(tf.transpose(x, [1, 0, 2]))

        def step(k, total, sums):
            total = total + tf.reduce_max(steps.read(words - 1 - k), 1)
            return k + 1, total, sums.write(k, total)

        sums = tf.while_loop(lambda k, *_: k < words, step, (0, tf.zeros_like(x[:, 0, 0]), tf.TensorArray(tf.float32, words)))
        results = {"y": y, "state": state, "sums": sums[2].stack(), "total": sums[1], "count": sums[2].size()}
        results = {name: tf1.identity(value, name=name) for name, value in results.items()}
        session.run(tf1.global_variables_initializer())
        signature = tf1.saved_model.predict_signature_def({"x": x, "lengths": lengths}, results)
        saver = tf1.saved_model.Builder(place("arrays"))
        saver.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
        saver.save()
        members = {}
        for k, (rows, words) in enumerate(((1, 1), (3, 5), (4, 12), (2, 7))):
            given = {"x": f32(rows, words, 3), "lengths": rng.integers(1, words + 1, rows, np.int32)}
            answers = session.run(results, {x: given["x"], lengths: given["lengths"]})
            members.update({f"serving_default.{k}/in/{name}": value for name, value in given.items()})
            members.update({f"serving_default.{k}/out/{name}": value for name, value in answers.items()})
        np.savez_compressed(os.path.join(out, "arrays.npz"), **members)
    strip(os.path.join(out, "arrays"))


for case in sys.argv[2:] or ["module", "flow", "tables", "keras2", "builder", "open_sizes", "arrays"]:
    globals()[case]()
