"""Architectures of the package transformers in Flax, with random weights and few, narrow layers."""

import numpy as np
import transformers

import transformers_parts
from transformers_parts import SMALL

OPTIONS = transformers_parts.OPTIONS | {
    "Beit": dict(image_size=64),
    "BigBird": dict(block_size=4, num_random_blocks=1, attention_type="block_sparse"),
    "Dinov2": dict(image_size=64, patch_size=16),
    "GPTNeo": dict(attention_types=[[["global", "local"], 1]], window_size=8),
    "Gemma": dict(num_key_value_heads=1, head_dim=16),
    "Llama": dict(num_key_value_heads=4),
    "LongT5": dict(local_radius=3, global_block_size=4, encoder_attention_type="transient-global"),
    "Mistral": dict(num_key_value_heads=2, sliding_window=8),
    "ViT": dict(image_size=64),
    "Wav2Vec2": dict(
        conv_dim=(32, 32, 32), conv_stride=(5, 2, 2), conv_kernel=(10, 3, 2), num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4, do_stable_layer_norm=True, feat_extract_norm="layer",
        mask_time_prob=0.0, mask_feature_prob=0.0,
    ),
}
HEADS = {
    "GPT2": "LMHeadModel", "GPTJ": "ForCausalLM", "GPTNeo": "ForCausalLM", "Llama": "ForCausalLM", "Mistral": "ForCausalLM",
    "Gemma": "ForCausalLM", "Bloom": "ForCausalLM", "OPT": "ForCausalLM", "XGLM": "ForCausalLM", "Marian": "MTModel",
    "Bart": "ForConditionalGeneration", "MBart": "ForConditionalGeneration", "Pegasus": "ForConditionalGeneration",
    "T5": "ForConditionalGeneration", "LongT5": "ForConditionalGeneration", "BlenderbotSmall": "ForConditionalGeneration",
    "Bert": "ForPreTraining", "DistilBert": "ForTokenClassification", "Roberta": "ForMultipleChoice", "BigBird": "ForMaskedLM",
    "ResNet": "ForImageClassification", "Beit": "ForImageClassification", "Wav2Vec2": "ForCTC",
}


def build(name):
    generator = np.random.default_rng(0)
    tokens = lambda *shape: generator.integers(3, 200, shape).astype(np.int32)
    numbers = lambda *shape: generator.standard_normal(shape).astype(np.float32)
    if name == "CLIP":
        config = transformers_parts.config_of(name)
        inputs = {"input_ids": tokens(1, 16), "pixel_values": numbers(1, 3, 32, 32)}
    else:
        small = {} if name in ("RegNet", "ResNet") else SMALL
        config = getattr(transformers, f"{name}Config")(**{**small, **OPTIONS.get(name, {})})
        if name in ("Beit", "Dinov2", "ViT", "RegNet", "ResNet"):
            inputs = {"pixel_values": numbers(1, 3, 64, 64)}
        elif name == "Wav2Vec2":
            inputs = {"input_values": numbers(1, 1600)}
        elif name == "Whisper":
            inputs = {"input_features": numbers(1, 20, 64), "decoder_input_ids": tokens(1, 8)}
        elif config.is_encoder_decoder:
            inputs = {"input_ids": tokens(1, 16), "decoder_input_ids": tokens(1, 8)}
        elif name == "Roberta":
            inputs = {"input_ids": tokens(1, 3, 16)}
        else:
            inputs = {"input_ids": tokens(1, 64 if name == "BigBird" else 16)}
    size = {"input_shape": (1, 64, 64, 3)} if "pixel_values" in inputs and name != "CLIP" else {}
    if name == "BigBird":
        size = {"input_shape": (1, 64)}
    model = getattr(transformers, f"Flax{name}{HEADS.get(name, 'Model')}")(config, seed=0, **size)
    return lambda **x: model(**x).to_tuple(), inputs
