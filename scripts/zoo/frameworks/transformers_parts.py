"""Small architectures of the package transformers: their options, classes, and inputs."""

import numpy as np

SMALL = dict(
    hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, vocab_size=200,
    max_position_embeddings=64, d_model=64, n_embd=64, n_layer=2, n_head=4, n_positions=64, num_layers=2,
    num_heads=4, d_ff=96, d_kv=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
    decoder_attention_heads=4, encoder_ffn_dim=96, decoder_ffn_dim=96, dim=64, hidden_dim=96, n_layers=2,
    n_heads=4, word_embed_proj_dim=64, ffn_dim=96, num_decoder_layers=2, emb_dim=64,
)
# Options that an architecture derives from others.
DERIVED = {"Funnel": {"num_hidden_layers"}, "XLNet": {"max_position_embeddings"}}
# What an architecture needs besides SMALL.
OPTIONS = {
    "Albert": dict(embedding_size=32, num_hidden_groups=1),
    "CTRL": dict(dff=96),
    "Deberta": dict(relative_attention=True, pos_att_type=["c2p", "p2c"]),
    "DebertaV2": dict(relative_attention=True, pos_att_type=["c2p", "p2c"]),
    "Electra": dict(embedding_size=32),
    "Funnel": dict(block_sizes=[2, 2], d_head=16, d_inner=96, n_head=4),
    "Longformer": dict(attention_window=8),
    "MobileBert": dict(
        embedding_size=32, intra_bottleneck_size=32, true_hidden_size=32, num_feedforward_networks=2
    ),
    "XLNet": dict(d_inner=96, d_head=16),
    "Esm": dict(pad_token_id=1),
    "GPTJ": dict(rotary_dim=8),
    "Mistral": dict(num_key_value_heads=2),
    "Whisper": dict(
        num_mel_bins=20, max_source_positions=32, max_target_positions=24, pad_token_id=0,
        decoder_start_token_id=1, bos_token_id=1, eos_token_id=2, suppress_tokens=None, begin_suppress_tokens=None,
    ),
    "Speech2Text": dict(
        input_feat_per_channel=20, input_channels=1, conv_channels=32, max_source_positions=64,
        max_target_positions=24,
    ),
    "Wav2Vec2": dict(
        conv_dim=(32, 32, 32), conv_stride=(5, 2, 2), conv_kernel=(10, 3, 2), num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4, mask_time_prob=0.0, mask_feature_prob=0.0,
    ),
    "ViTMAE": dict(decoder_hidden_size=32, decoder_num_hidden_layers=1, decoder_intermediate_size=64),
    "Swin": dict(embed_dim=24, depths=[2, 2], num_heads=[2, 4], window_size=7),
    "Segformer": dict(hidden_sizes=[16, 32, 40, 64], num_attention_heads=[1, 2, 5, 8], depths=[1, 1, 1, 1]),
    "MobileViT": dict(hidden_sizes=[48, 64, 80], num_attention_heads=4),
    "ConvNext": dict(hidden_sizes=[24, 48, 96, 192], depths=[1, 1, 3, 1]),
    "ConvNextV2": dict(hidden_sizes=[24, 48, 96, 192], depths=[1, 1, 3, 1]),
    "EfficientFormer": dict(depths=[1, 1, 1, 2], hidden_sizes=[16, 32, 64, 96], dim=96, num_meta3d_blocks=1),
    "RegNet": dict(hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 2, 1], groups_width=8, embedding_size=16),
    "ResNet": dict(hidden_sizes=[32, 64, 96, 128], depths=[1, 1, 2, 1], embedding_size=16),
    "Data2VecVision": dict(image_size=64, patch_size=16),
}
OPTIONS["Hubert"] = OPTIONS["Wav2Vec2"]
IMAGES = {"Swin": 224, "Segformer": 128, "MobileViT": 128, "ConvNext": 128, "ConvNextV2": 128, "Cvt": 64,
          "EfficientFormer": 224, "RegNet": 96, "ResNet": 96, "ViT": 64, "DeiT": 64, "ViTMAE": 64, "Data2VecVision": 64}
# Architectures whose sizes are lists.
WIDE = {"Swin", "Segformer", "MobileViT", "ConvNext", "ConvNextV2", "Cvt", "RegNet", "ResNet"}
# What a model's class adds to the name, if not `Model`.
HEADS = {
    "Bart": "ForConditionalGeneration", "Blenderbot": "ForConditionalGeneration", "BlenderbotSmall": "ForConditionalGeneration",
    "Pegasus": "ForConditionalGeneration", "MBart": "ForConditionalGeneration", "Marian": "MTModel", "LED": "ForConditionalGeneration",
    "T5": "ForConditionalGeneration", "GPT2": "LMHeadModel", "OPT": "ForCausalLM", "Mistral": "ForCausalLM", "GPTJ": "ForCausalLM",
    "XGLM": "ForCausalLM", "CTRL": "LMHeadModel", "OpenAIGPT": "LMHeadModel", "Whisper": "Model", "Speech2Text": "Model",
    "Bert": "ForMaskedLM", "Roberta": "ForTokenClassification", "DistilBert": "ForQuestionAnswering",
    "Electra": "ForPreTraining", "Segformer": "ForSemanticSegmentation", "ViT": "ForImageClassification",
    "ResNet": "ForImageClassification", "RegNet": "ForImageClassification", "MobileViT": "ForImageClassification",
    "Swin": "ForImageClassification", "ConvNext": "ForImageClassification", "Wav2Vec2": "ForCTC", "Hubert": "ForCTC",
}


def inputs_of(name, config):
    generator = np.random.default_rng(0)
    tokens = generator.integers(3, 200, (1, 16)).astype(np.int32)
    numbers = lambda *shape: generator.standard_normal(shape).astype(np.float32)
    if name == "ViTMAE":
        return {"pixel_values": numbers(1, 3, 64, 64), "noise": generator.random((1, 16)).astype(np.float32)}
    if name in IMAGES:
        return {"pixel_values": numbers(1, 3, IMAGES[name], IMAGES[name])}
    if name in ("Wav2Vec2", "Hubert"):
        return {"input_values": numbers(1, 1600)}
    if name == "Whisper":
        return {"input_features": numbers(1, 20, 64), "decoder_input_ids": tokens[:, :8]}
    if name == "Speech2Text":
        return {"input_features": numbers(1, 64, 20), "decoder_input_ids": tokens[:, :8]}
    if name == "CLIP":
        return {"input_ids": tokens, "pixel_values": numbers(1, 3, 32, 32)}
    if config.is_encoder_decoder:
        return {"input_ids": tokens, "decoder_input_ids": tokens[:, :8]}
    if name == "LayoutLM":
        return {"input_ids": tokens, "bbox": np.sort(generator.integers(0, 60, (1, 16, 4)), -1).astype(np.int32)}
    return {"input_ids": tokens}


def config_of(name):
    """The configuration of a small network."""
    import transformers

    if name == "CLIP":
        part = dict(SMALL, projection_dim=32, image_size=32, patch_size=8, eos_token_id=199)
        return transformers.CLIPConfig(text_config=part, vision_config=part, projection_dim=32)
    image = {"image_size": IMAGES[name]} if name in IMAGES else {}
    small = {key: size for key, size in SMALL.items() if name not in WIDE and key not in DERIVED.get(name, ())}
    return getattr(transformers, f"{name}Config")(**{**small, **image, **OPTIONS.get(name, {})})
