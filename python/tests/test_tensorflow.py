"""Compares TensorFlow and Keras models with their own results."""

import numpy as np
import pytest
import tfcompile

tf = pytest.importorskip("tensorflow")


def test_a_function_with_a_variable():
    w = tf.Variable([[1.0], [2.0], [3.0]])

    @tf.function(input_signature=[tf.TensorSpec([2, 3], tf.float32)])
    def layer(x):
        return tf.nn.sigmoid(x @ w)

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (result,) = tfcompile.compile(layer).load()(x).values()
    np.testing.assert_allclose(result, layer(x).numpy(), rtol=1e-6)


def test_a_keras_model_and_its_saved_model(tmp_path):
    tf.keras.utils.set_random_seed(1)
    layers = [tf.keras.layers.Dense(8, activation="relu", input_shape=(4,)), tf.keras.layers.Dense(2)]
    model = tf.keras.Sequential(layers)
    x = np.random.default_rng(0).standard_normal((3, 4), np.float32)
    want = model(x).numpy()
    (result,) = tfcompile.compile(model, batch=3).load()(x).values()
    np.testing.assert_allclose(result, want, rtol=1e-5, atol=1e-6)
    tf.saved_model.save(model, str(tmp_path / "model"))
    (result,) = tfcompile.compile(tmp_path / "model", batch=3).load()(x).values()
    np.testing.assert_allclose(result, want, rtol=1e-5, atol=1e-6)


def test_a_session_in_place_of_tensorflows():
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [None, 2], name="x")
        w = tf.compat.v1.get_variable("w", initializer=[[1.0], [-1.0]])
        loss = tf.reduce_sum(tf.square(x @ w))
        train = tf.compat.v1.train.GradientDescentOptimizer(0.5).minimize(loss)
        init = tf.compat.v1.global_variables_initializer()
        data = [[1.0, 2.0], [3.0, 4.0]]
        with tf.compat.v1.Session(graph=graph) as session:
            session.run(init)
            want = [session.run([train, loss], {x: data})[1], *session.run([w, loss], {x: data})]
        with tfcompile.Session(graph=graph) as session:
            session.run(init)
            nothing, first = session.run([train, loss], feed_dict={x: np.float32(data)})
            got = [first, *session.run([w, loss], {x: data})]
    assert nothing is None
    for a, b in zip(got, want):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_estimators_functions_give_graph_and_config():
    def input_fn():
        return {"x": np.zeros([2, 3], np.float32)}, np.zeros([2], np.float32)

    def model_fn(features, labels, mode):
        w = tf.compat.v1.get_variable("w", initializer=tf.ones([3, 1]), use_resource=True)
        prediction = tf.squeeze(features["x"] @ w, 1)
        if mode == "infer":
            return tf.compat.v1.estimator.EstimatorSpec(mode, predictions=prediction)
        loss = tf.reduce_mean(tf.square(prediction - labels))
        step = tf.compat.v1.train.get_or_create_global_step()
        train_op = tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        return tf.compat.v1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    graph, config = tfcompile.config.from_model_fn(model_fn, input_fn, mode="infer")
    assert [feed.name for feed in config.feeds] == ["features_x"]
    model = tfcompile.compile(graph, config=config).load()
    model.variables["w"][...] = [[1], [2], [3]]
    assert model(np.ones((2, 3), np.float32))["predictions"].tolist() == [6, 6]


def test_tensorflows_messages_serve():
    graph = tf.Graph()
    with graph.as_default():
        tf.identity(tf.compat.v1.placeholder(tf.string, [2], name="s"), name="t")
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=2)
    with tfcompile.Session(graph=graph, config=config) as session:
        assert session.run("t:0", {"s:0": np.array([b"a", b"bc"], object)}).tolist() == [b"a", b"bc"]
