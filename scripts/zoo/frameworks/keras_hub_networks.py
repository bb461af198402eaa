"""Architectures of the package keras_hub (Keras 3), with random weights and few, narrow layers.

A backbone takes what its `input` states: images, tokens, masks, audio, or several of these.
"""

import inspect

import keras
import keras_hub
import numpy as np

from keras_networks import settle, tensorflow_variables

SMALL = dict(
    vocabulary_size=200, num_layers=2, num_heads=4, hidden_dim=64, intermediate_dim=96, max_sequence_length=64, num_query_heads=4,
    num_key_value_heads=2, embedding_dim=64, num_segments=2, head_dim=16, feedforward_hidden_dim=96, num_encoder_layers=2,
    num_decoder_layers=2, max_encoder_sequence_length=32, max_decoder_sequence_length=24, num_mels=20, bucket_size=32,
    dropout=0.0, embedding_size=32, dtype="float32",
)
OPTIONS = {
    "Bloom": dict(intermediate_dim=256),
    "Electra": dict(vocab_size=200),
    "Falcon": dict(num_attention_heads=4),
    "DenseNet": dict(stackwise_num_repeats=[2, 2, 2], image_shape=(64, 64, 3)),
    "DeiT": dict(image_shape=(64, 64, 3), patch_size=16),
    "EfficientNet": dict(
        stackwise_width_coefficients=[0.5] * 3, stackwise_depth_coefficients=[0.5] * 3, stackwise_kernel_sizes=[3, 3, 5],
        stackwise_num_repeats=[1, 2, 2], stackwise_input_filters=[32, 16, 24], stackwise_output_filters=[16, 24, 40],
        stackwise_expansion_ratios=[1, 6, 6], stackwise_strides=[1, 2, 2], stackwise_squeeze_and_excite_ratios=[0.25] * 3,
        stackwise_block_types=["v1"] * 3, image_shape=(64, 64, 3),
    ),
    "Gemma": dict(num_key_value_heads=1),
    "MiT": dict(
        layerwise_depths=[1, 1], image_shape=(64, 64, 3), hidden_dims=[16, 32], num_layers=2, layerwise_num_heads=[1, 2],
        layerwise_sr_ratios=[4, 2], max_drop_path_rate=0.0, layerwise_patch_sizes=[7, 3], layerwise_strides=[4, 2],
    ),
    "Mixtral": dict(num_experts=4, top_k=2, sliding_window=8),
    "Mistral": dict(sliding_window=8),
    "Phi3": dict(),
    "QwenMoe": dict(
        moe_intermediate_dim=32, shared_expert_intermediate_dim=48, num_experts=4, top_k=2, norm_top_k_prob=True,
        decoder_sparse_step=1, mlp_only_layers=[],
    ),
    "Qwen3Moe": dict(moe_intermediate_dim=32, num_experts=4, top_k=2, norm_top_k_prob=True, decoder_sparse_step=1, mlp_only_layers=[]),
    "ResNet": dict(
        input_conv_filters=[64], input_conv_kernel_sizes=[7], stackwise_num_filters=[64, 96], stackwise_num_blocks=[2, 2],
        stackwise_num_strides=[1, 2], block_type="basic_block", image_shape=(64, 64, 3),
    ),
    "RoformerV2": dict(head_size=16),
    "SmolLM3": dict(
        num_attention_heads=4, layer_norm_epsilon=1e-6, partial_rotary_factor=1.0,
        layer_types=["full_attention"] * 2, mlp_bias=False, rope_layer_enabled_list=[True, False], attention_bias=False,
        attention_dropout=0.0, max_position_embeddings=64, rms_norm_epsilon=1e-6, rope_theta=10000.0,
    ),
    "SwinTransformer": dict(image_shape=(64, 64, 3), embed_dim=24, depths=[2, 2], num_heads=[2, 4], window_size=4, patch_size=4),
    "VGG": dict(stackwise_num_repeats=[2, 2], stackwise_num_filters=[16, 32], image_shape=(64, 64, 3)),
    "ViT": dict(image_shape=(64, 64, 3), patch_size=16, num_layers=2, num_heads=4, hidden_dim=64, mlp_dim=96),
    "Whisper": dict(max_encoder_sequence_length=64),
    "ViTDet": dict(
        hidden_size=64, num_layers=2, intermediate_dim=96, num_heads=4, global_attention_layer_indices=[1], image_shape=(64, 64, 3),
        patch_size=16, num_output_channels=32, window_size=2,
    ),
}


# Largest sizes of networks (see make.py), if not the usual ones.
OPEN = {"Whisper": {"batch": 4, "w0": 24}}


def value(name, shape, dtype, generator):
    """An array for an input of a backbone."""
    if "image" in name or len(shape) == 4:
        return generator.uniform(0, 1, (1, *[size or 64 for size in shape[1:]])).astype(np.float32)
    sizes = (1, *[size or (64 if "feature" in name or "audio" in name else 16) for size in shape[1:]])
    if "mask" in name:
        return np.ones(sizes, dtype)
    if "segment" in name:
        return np.sort(generator.integers(0, 2, sizes)).astype(dtype)
    if "int" in dtype:
        return generator.integers(3, 200, sizes).astype(dtype)
    return generator.standard_normal(sizes).astype(np.float32)


def detector():
    """A detector with its decoder: boxes of three scales, suppressed for each class."""
    encoder = keras_hub.models.ResNetBackbone(
        input_conv_filters=[64], input_conv_kernel_sizes=[7], stackwise_num_filters=[64, 64, 96, 96], stackwise_num_blocks=[1, 1, 1, 1],
        stackwise_num_strides=[1, 2, 2, 2], block_type="basic_block", image_shape=(128, 128, 3),
    )
    backbone = keras_hub.models.RetinaNetBackbone(image_encoder=encoder, min_level=3, max_level=5, use_p5=False, image_shape=(128, 128, 3))
    model = keras_hub.models.RetinaNetObjectDetector(backbone=backbone, num_classes=5, bounding_box_format="yxyx")
    image = np.random.default_rng(0).uniform(0, 1, (1, 128, 128, 3)).astype(np.float32)
    model(image)
    settle(backbone, image)
    for variable in model.variables:
        # Large results of new heads would give all boxes the score 1.
        if "_head" in variable.path and variable.path.endswith("kernel"):
            variable.assign(variable * 0.4)

    def function(image):
        return model.decode_predictions(model(image, training=False), image)

    return function, {"image": image}, tensorflow_variables(model)


def build(name):
    keras.utils.set_random_seed(0)
    if name == "RetinaNetDetector":
        return detector()
    kind = getattr(keras_hub.models, f"{name}Backbone")
    options = {**SMALL, **OPTIONS.get(name, {})}
    taken = inspect.signature(kind.__init__).parameters
    model = kind(**{key: option for key, option in options.items() if key in taken})
    generator = np.random.default_rng(0)
    inputs = model.input if isinstance(model.input, dict) else {"images": model.input}
    arrays = {name: value(name, tensor.shape, tensor.dtype, generator) for name, tensor in inputs.items()}
    whole = isinstance(model.input, dict)
    settle(model, arrays if whole else arrays["images"])

    def function(**x):
        return model(x if whole else x["images"], training=False)

    return function, arrays, tensorflow_variables(model)
