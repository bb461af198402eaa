"""Networks of Keras and TensorFlow for images of any size."""

import numpy as np
import tensorflow as tf

layers = tf.keras.layers


def unet(x):
    """A U-Net whose decoder resizes to the sizes of the encoder."""
    relu = lambda x, features, stride=1: layers.Conv2D(features, 3, stride, "same", activation="relu")(x)
    first = relu(x, 8)
    second = relu(first, 12, 2)
    third = relu(second, 16, 2)
    resize = lambda pair: tf.image.resize(pair[0], tf.shape(pair[1])[1:3])
    y = layers.Lambda(resize)([third, second])
    y = relu(layers.Concatenate()([y, second]), 12)
    y = layers.Lambda(resize)([y, first])
    return layers.Conv2D(3, 1)(relu(layers.Concatenate()([y, first]), 8))


def transposed(x):
    y = layers.Conv2D(8, 3, 2, "same", activation="relu")(x)
    y = layers.Conv2DTranspose(6, 3, 2, "same", activation="relu")(y)
    y = layers.Conv2DTranspose(4, 4, 2, "valid")(y)
    y = layers.Conv2DTranspose(4, 2, 3, "same")(y)
    return y, layers.GlobalAveragePooling2D()(y)


def enlarged(x):
    y = layers.UpSampling2D(2)(x)
    z = layers.UpSampling2D((3, 2), interpolation="bilinear")(x)
    return layers.Conv2D(4, 3)(y), layers.DepthwiseConv2D(3, padding="same")(z)


def subpixel(x):
    """Super-resolution by moving features into pixels."""
    y = layers.Conv2D(12, 3, padding="same", activation="relu")(x)
    return layers.Lambda(lambda x: tf.nn.depth_to_space(x, 2))(y)


def passthrough(x):
    """Blocks of pixels as features, as in YOLO. Sizes must be even, so the image is doubled before."""
    y = layers.UpSampling2D(2)(layers.Conv2D(4, 3, padding="same")(x))
    return layers.Lambda(lambda x: tf.nn.space_to_depth(x, 2))(y)


def resized(x):
    bilinear = lambda x: tf.compat.v1.image.resize_bilinear(x, tf.shape(x)[1:3] // 2 + 3, align_corners=True)
    nearest = lambda x: tf.compat.v1.image.resize_nearest_neighbor(x, tf.shape(x)[1:3] * 3 // 2, half_pixel_centers=True)
    fixed = lambda x: tf.image.resize(x, (20, 12))
    return [layers.Lambda(function)(x) for function in (bilinear, nearest, fixed)]


def normalized(x):
    y = layers.Conv2D(8, 3, padding="same")(x)
    y = layers.Lambda(lambda x: tf.nn.local_response_normalization(x, 2))(y)
    return layers.GroupNormalization(4)(y)


NETWORKS = {
    "UNet": unet, "Transposed": transposed, "Enlarged": enlarged, "Subpixel": subpixel, "Passthrough": passthrough, "Resized": resized,
    "Normalized": normalized,
}
DIMENSIONS = {name: {("image", 0): "batch", ("image", 1): "high", ("image", 2): "wide"} for name in NETWORKS}
OPEN = {name: {"high": (8, 40), "wide": (8, 32), "batch": 3} for name in NETWORKS}


def build(name):
    tf.keras.utils.set_random_seed(0)
    image = layers.Input((None, None, 3))
    network = tf.keras.Model(image, NETWORKS[name](image))
    inputs = {"image": np.random.default_rng(0).standard_normal((1, 24, 20, 3)).astype(np.float32)}
    return lambda image: network(image, training=False), inputs, list(network.variables)
