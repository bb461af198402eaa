"""Networks that no package has, written with Keras: random weights, small sizes.

RnnTransducer decodes greedily: for each frame, the joint network emits at most two symbols.
"""

import numpy as np
import tensorflow as tf

from keras_networks import settle

layers = tf.keras.layers
generator = np.random.default_rng(0)


def numbers(*shape):
    return generator.standard_normal(shape).astype(np.float32)


def rnn_transducer():
    frames, symbols, units = 20, 12, 32
    encoder = tf.keras.Sequential([layers.LSTM(units, return_sequences=True), layers.LSTM(units, return_sequences=True)])
    embedding, cell = layers.Embedding(symbols, units), layers.LSTMCell(units)
    joint, scores = layers.Dense(units, activation="tanh"), layers.Dense(symbols)

    def function(audio):
        encoded = encoder(audio)[0]
        zero = tf.zeros([1, units])
        predicted, (h, c) = cell(embedding(tf.zeros([1], tf.int32)), [zero, zero])
        written, count = tf.zeros([2 * frames], tf.int32), tf.constant(0)
        for step in tf.range(2 * frames):
            frame = encoded[step // 2][None]
            symbol = tf.argmax(scores(joint(tf.concat([frame, predicted], -1))), -1, output_type=tf.int32)
            if symbol[0] != 0:
                written = tf.tensor_scatter_nd_update(written, [[count]], symbol)
                count += 1
                predicted, (h, c) = cell(embedding(symbol), [h, c])
        return written, count, predicted

    return function, {"audio": numbers(1, frames, 16)}, [encoder, embedding, cell, joint, scores]


def dcgan_generator():
    model = tf.keras.Sequential([layers.Dense(7 * 7 * 64, use_bias=False), layers.BatchNormalization(), layers.LeakyReLU(),
                                 layers.Reshape([7, 7, 64])])
    for filters, strides in ((32, 1), (16, 2)):
        model.add(layers.Conv2DTranspose(filters, 5, strides, "same", use_bias=False))
        model.add(layers.BatchNormalization())
        model.add(layers.LeakyReLU())
    model.add(layers.Conv2DTranspose(1, 5, 2, "same", activation="tanh"))
    return lambda x: model(x, training=False), {"x": numbers(4, 100)}, [model]


def dcgan_discriminator():
    model = tf.keras.Sequential([layers.Conv2D(32, 5, 2, "same"), layers.LeakyReLU(), layers.Conv2D(64, 5, 2, "same"),
                                 layers.LeakyReLU(), layers.Flatten(), layers.Dense(1)])
    return lambda x: model(x, training=False), {"x": numbers(4, 28, 28, 1)}, [model]


def cyclegan_generator():
    """Instance normalization, reflected borders, and residual blocks."""
    norms = [layers.GroupNormalization(groups=-1) for _ in range(9)]
    convolutions = [layers.Conv2D(16, 7), layers.Conv2D(32, 3, 2, "same"), layers.Conv2D(64, 3, 2, "same")]
    convolutions += [layers.Conv2D(64, 3) for _ in range(4)]
    convolutions += [layers.Conv2DTranspose(32, 3, 2, "same"), layers.Conv2DTranspose(16, 3, 2, "same")]
    last = layers.Conv2D(3, 7, activation="tanh")
    reflect = lambda x, n: tf.pad(x, [[0, 0], [n, n], [n, n], [0, 0]], "REFLECT")

    def function(x):
        x = tf.nn.relu(norms[0](convolutions[0](reflect(x, 3))))
        for k in (1, 2):
            x = tf.nn.relu(norms[k](convolutions[k](x)))
        for k in (3, 5):
            y = tf.nn.relu(norms[k](convolutions[k](reflect(x, 1))))
            x += norms[k + 1](convolutions[k + 1](reflect(y, 1)))
        for k in (7, 8):
            x = tf.nn.relu(norms[k](convolutions[k](x)))
        return last(reflect(x, 3))

    return function, {"x": numbers(1, 64, 64, 3)}, [*norms, *convolutions, last]


def actor_critic():
    """A policy for 4 stacked frames, with its value, action, and log-probability."""
    body = tf.keras.Sequential([layers.Conv2D(16, 8, 4, activation="relu"), layers.Conv2D(32, 4, 2, activation="relu"),
                                layers.Flatten(), layers.Dense(128, activation="relu")])
    policy, value = layers.Dense(6), layers.Dense(1)

    def function(frames):
        hidden = body(tf.cast(frames, tf.float32) / 255)
        logarithms = tf.nn.log_softmax(policy(hidden))
        action = tf.argmax(logarithms, -1, output_type=tf.int32)
        return action, tf.gather(logarithms, action, batch_dims=1), value(hidden)

    return function, {"frames": generator.integers(0, 256, (2, 84, 84, 4)).astype(np.uint8)}, [body, policy, value]


def gaussian_policy():
    """The squashed normal distribution of soft actor-critic, with given noise."""
    body = tf.keras.Sequential([layers.Dense(64, activation="relu"), layers.Dense(64, activation="relu")])
    mean, deviation = layers.Dense(6), layers.Dense(6)

    def function(observation, noise):
        hidden = body(observation)
        scale = tf.exp(tf.clip_by_value(deviation(hidden), -20, 2))
        action = mean(hidden) + scale * noise
        density = -0.5 * noise**2 - tf.math.log(scale) - 0.5 * np.log(2 * np.pi)
        squash = 2 * (np.log(2) - action - tf.nn.softplus(-2 * action))
        return tf.tanh(action), tf.reduce_sum(density - squash, -1)

    return function, {"observation": numbers(4, 17), "noise": numbers(4, 6)}, [body, mean, deviation]


def ssd_detector():
    """Boxes of two scales, decoded from anchors, and suppressed for each class."""
    base = tf.keras.applications.MobileNetV2((96, 96, 3), 0.35, include_top=False, weights=None)
    taps = tf.keras.Model(base.input, [base.get_layer("block_13_expand_relu").output, base.output])
    classes, ratios = 4, 3
    heads = [(layers.Conv2D(ratios * (4 + classes), 3, padding="same")) for _ in range(2)]
    grids = []
    for size, scale in ((6, 0.3), (3, 0.6)):
        centers = (np.stack(np.meshgrid(*[np.arange(size)] * 2, indexing="ij"), -1) + 0.5) / size
        for ratio in (0.5, 1.0, 2.0):
            grids.append((size, centers, scale * np.sqrt(ratio), scale / np.sqrt(ratio)))
    anchors = [np.concatenate([np.stack([c[..., 0], c[..., 1], np.full(c.shape[:2], h), np.full(c.shape[:2], w)], -1)
                               .reshape(-1, 1, 4) for s, c, h, w in grids if s == size], 1).reshape(-1, 4) for size in (6, 3)]
    anchors = np.concatenate(anchors).astype(np.float32)

    def function(image):
        features = taps(image / 127.5 - 1, training=False)
        found = tf.concat([tf.reshape(head(x), [1, -1, 4 + classes]) for head, x in zip(heads, features)], 1)
        centers = found[..., :2] * 0.1 * anchors[:, 2:] + anchors[:, :2]
        sizes = tf.exp(found[..., 2:4] * 0.2) * anchors[:, 2:] / 2
        boxes = tf.concat([centers - sizes, centers + sizes], -1)[:, :, None]
        scores = tf.sigmoid(found[..., 4:])
        return tuple(tf.image.combined_non_max_suppression(boxes, scores, 10, 20, 0.5, 0.45))

    x = generator.uniform(0, 255, (1, 96, 96, 3)).astype(np.float32)
    settle(taps, x / 127.5 - 1)
    return function, {"image": x}, [taps, *heads]


def two_stage_detector():
    """Proposals, of which suppression leaves a number that depends on the image; each is cropped and classified."""
    base = tf.keras.applications.MobileNetV2((128, 128, 3), 0.35, include_top=False, weights=None)
    body = tf.keras.Model(base.input, base.get_layer("block_13_expand_relu").output)
    proposal = [layers.Conv2D(64, 3, padding="same", activation="relu"), layers.Conv2D(5, 1)]
    second = tf.keras.Sequential([layers.Input((8, 8, 96 * 2)), layers.Conv2D(32, 3, strides=2, padding="same"),
                                  layers.BatchNormalization(), layers.ReLU(), layers.DepthwiseConv2D(3, padding="same"),
                                  layers.AveragePooling2D(2), layers.MaxPooling2D(2, 1)])
    heads = [layers.Dense(6), layers.Dense(4)]
    size = 8
    centers = ((np.stack(np.meshgrid(*[np.arange(size)] * 2, indexing="ij"), -1) + 0.5) / size).reshape(-1, 2).astype(np.float32)

    def function(image):
        features = body(image / 127.5 - 1, training=False)
        found = features
        for layer in proposal:
            found = layer(found)
        found = tf.reshape(found, [-1, 5])
        extents = tf.exp(found[:, 2:4] * 0.5) * 0.2
        boxes = tf.concat([centers + found[:, :2] * 0.1 - extents, centers + found[:, :2] * 0.1 + extents], -1)
        chosen = tf.image.non_max_suppression(boxes, found[:, 4], 24, 0.4, tf.reduce_mean(found[:, 4]))
        boxes = tf.gather(boxes, chosen)
        crops = tf.image.crop_and_resize(features, boxes, tf.zeros_like(chosen), [8, 8])
        flat = tf.reshape(second(crops, training=False), [-1, 32])
        return boxes, tf.nn.softmax(heads[0](flat)), boxes + heads[1](flat) * 0.1, tf.shape(chosen)

    x = generator.uniform(0, 255, (1, 128, 128, 3)).astype(np.float32)
    settle(body, x / 127.5 - 1)
    return function, {"image": x}, [body, *proposal, second, *heads]


def crnn():
    """Text recognition: convolutions, two bidirectional layers, and a greedy CTC decoder."""
    body = tf.keras.Sequential([layers.Conv2D(16, 3, padding="same", activation="relu"), layers.MaxPool2D(2),
                                layers.Conv2D(32, 3, padding="same", activation="relu"), layers.MaxPool2D((2, 1))])
    rows = [layers.Bidirectional(layers.LSTM(32, return_sequences=True)) for _ in range(2)]
    output = layers.Dense(20)

    def function(image):
        x = tf.transpose(body(image), [0, 2, 1, 3])
        x = tf.reshape(x, [1, x.shape[1], -1])
        for row in rows:
            x = row(x)
        best = tf.argmax(output(x), -1, output_type=tf.int32)
        changes = tf.concat([tf.ones([1, 1], tf.bool), best[:, 1:] != best[:, :-1]], 1)
        return tf.where(changes & (best != 19), best, -1), output(x)

    return function, {"image": numbers(1, 32, 96, 1)}, [body, *rows, output]


def wavenet():
    """Dilated causal convolutions with gates, on 400 samples."""
    first, last = layers.Conv1D(24, 1), [layers.Conv1D(32, 1, activation="relu"), layers.Conv1D(64, 1)]
    gates = [(layers.Conv1D(48, 2, dilation_rate=2**k, padding="causal"), layers.Conv1D(48, 1)) for k in range(6)]

    def function(audio):
        x, skipped = first(audio), 0.0
        for dilated, mixed in gates:
            a, b = tf.split(dilated(x), 2, -1)
            residual, skip = tf.split(mixed(tf.tanh(a) * tf.sigmoid(b)), 2, -1)
            x, skipped = x + residual, skipped + skip
        return last[1](last[0](tf.nn.relu(skipped)))

    return function, {"audio": numbers(1, 400, 1)}, [first, *last, *(layer for pair in gates for layer in pair)]


def neural_cf():
    """Neural collaborative filtering: two embeddings for users and items, and a small network."""
    tables = [layers.Embedding(count, 16) for count in (100, 200, 100, 200)]
    deep = tf.keras.Sequential([layers.Dense(32, activation="relu"), layers.Dense(16, activation="relu")])
    output = layers.Dense(1, activation="sigmoid")

    def function(user, item):
        product = tables[0](user) * tables[1](item)
        both = deep(tf.concat([tables[2](user), tables[3](item)], -1))
        return output(tf.concat([product, both], -1))

    indices = lambda most: generator.integers(0, most, 16).astype(np.int32)
    return function, {"user": indices(100), "item": indices(200)}, [*tables, deep, output]


def two_towers():
    """Retrieval: a query against 500 candidates, the ten best."""
    query = tf.keras.Sequential([layers.Embedding(100, 32), layers.GlobalAveragePooling1D(), layers.Dense(32)])
    items = layers.Embedding(500, 32)

    def function(history):
        scores = query(history) @ tf.transpose(items(tf.range(500)))
        return tuple(tf.math.top_k(scores, 10))

    return function, {"history": generator.integers(0, 100, (4, 12)).astype(np.int32)}, [query, items]


def point_net():
    """PointNet with its two transforms, on 128 points."""
    dense = lambda sizes: [layers.Conv1D(size, 1, activation="relu") for size in sizes]
    nets = [dense((16, 32)), dense((16,)), dense((16, 32)), dense((32, 64))]
    squares = [layers.Dense(9, bias_initializer=tf.constant_initializer(np.eye(3).ravel())),
               layers.Dense(256, bias_initializer=tf.constant_initializer(np.eye(16).ravel()))]
    output = layers.Dense(10)

    def apply(net, x):
        for layer in net:
            x = layer(x)
        return x

    def function(points):
        x = points @ tf.reshape(squares[0](tf.reduce_max(apply(nets[0], points), 1)), [-1, 3, 3])
        x = apply(nets[1], x)
        x = x @ tf.reshape(squares[1](tf.reduce_max(apply(nets[2], x), 1)), [-1, 16, 16])
        return output(tf.reduce_max(apply(nets[3], x), 1))

    return function, {"points": numbers(2, 128, 3)}, [*(layer for net in nets for layer in net), *squares, output]


NETWORKS = {
    "RnnTransducer": rnn_transducer, "DcganGenerator": dcgan_generator, "DcganDiscriminator": dcgan_discriminator,
    "CycleGanGenerator": cyclegan_generator, "ActorCritic": actor_critic, "GaussianPolicy": gaussian_policy,
    "SsdDetector": ssd_detector, "Crnn": crnn, "WaveNet": wavenet, "NeuralCf": neural_cf, "TwoTowers": two_towers,
    "PointNet": point_net, "TwoStageDetector": two_stage_detector,
}


def build(name):
    tf.keras.utils.set_random_seed(0)
    function, inputs, held = NETWORKS[name]()
    function(**inputs)
    return function, inputs, [variable for layer in held for variable in layer.variables]
