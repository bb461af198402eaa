"""Architectures of the package transformers in PyTorch, with random weights and few, narrow layers."""

import inspect

import numpy as np
import torch
import transformers
from transformers import masking_utils

import transformers_parts
from parts_torch import Function, generator, numbers, whole

transformers_parts.OPTIONS.update({
    "AST": dict(num_mel_bins=32, max_length=64, patch_size=16, frequency_stride=16, time_stride=16),
    "BigBird": dict(attention_type="original_full"),
    "Cohere": dict(num_key_value_heads=2),
    "Data2VecAudio": transformers_parts.OPTIONS["Wav2Vec2"],
    "DPT": dict(num_hidden_layers=4, patch_size=16, backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[16, 24, 32, 48], fusion_hidden_size=24),
    "Dinov2": dict(image_size=64, patch_size=16),
    "DecisionTransformer": dict(state_dim=11, act_dim=3, hidden_size=64, n_head=4, n_layer=2, max_ep_len=50),
    "Falcon": dict(new_decoder_architecture=True, num_kv_heads=2),
    "FocalNet": dict(image_size=64, embed_dim=16, depths=[1, 1, 1, 1], focal_levels=[2, 2, 2, 2], focal_windows=[3, 3, 3, 3]),
    "GLPN": dict(hidden_sizes=[16, 32, 40, 64], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 5, 8], decoder_hidden_size=16),
    "GPTBigCode": dict(multi_query=True),
    "GPTNeo": dict(attention_types=[[["global", "local"], 1]], window_size=8),
    "Gemma": dict(num_key_value_heads=1, head_dim=16),
    "Gemma2": dict(num_key_value_heads=2, head_dim=16, query_pre_attn_scalar=16, sliding_window=8),
    "Gemma3Text": dict(num_key_value_heads=2, head_dim=16, query_pre_attn_scalar=16, sliding_window=8),
    "Granite": dict(num_key_value_heads=2),
    "Hiera": dict(image_size=[64, 64], embed_dim=16, depths=[1, 1, 2, 1], num_heads=[1, 2, 4, 8], masked_unit_size=[8, 8], patch_stride=[4, 4]),
    "Llama": dict(num_key_value_heads=2),
    "LongT5": dict(local_radius=3, global_block_size=4, encoder_attention_type="transient-global"),
    "Mamba": dict(state_size=8, time_step_rank=8),
    "Mixtral": dict(num_key_value_heads=2, num_local_experts=4),
    "Marian": dict(pad_token_id=0, eos_token_id=1, decoder_start_token_id=0),
    "MobileNetV2": dict(image_size=64, depth_multiplier=0.35),
    "ModernBert": dict(local_attention=8, pad_token_id=0, reference_compile=False),
    "Nystromformer": dict(num_landmarks=16, segment_means_seq_len=16),
    "Olmo2": dict(num_key_value_heads=2),
    "PatchTST": dict(num_input_channels=3, context_length=64, prediction_length=16, patch_length=8, patch_stride=8),
    "Phi3": dict(num_key_value_heads=2, pad_token_id=0),
    "PoolFormer": dict(hidden_sizes=[16, 24, 32, 48], depths=[1, 1, 1, 1]),
    "PvtV2": dict(image_size=64, hidden_sizes=[16, 32, 40, 64], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 5, 8]),
    "Qwen2": dict(num_key_value_heads=2),
    "Qwen3": dict(num_key_value_heads=2, head_dim=16),
    "Qwen3Moe": dict(num_key_value_heads=2, head_dim=16, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32),
    "SmolLM3": dict(num_key_value_heads=2, pad_token_id=0),
    "Starcoder2": dict(num_key_value_heads=2),
    "Swinv2": dict(image_size=64, embed_dim=24, depths=[1, 1], num_heads=[2, 4], window_size=4),
    "WavLM": transformers_parts.OPTIONS["Wav2Vec2"],
    "Yolos": dict(image_size=[64, 64], num_detection_tokens=10),
})
transformers_parts.IMAGES.update({
    "Beit": 64, "DPT": 64, "Dinov2": 64, "FocalNet": 64, "GLPN": 64, "MobileNetV2": 64, "PoolFormer": 64, "PvtV2": 64, "Swinv2": 64,
    "Yolos": 64,
})
transformers_parts.WIDE.update({"FocalNet", "GLPN", "Hiera", "MobileNetV2", "PoolFormer", "PvtV2", "Swinv2", "DecisionTransformer"})
HEADS = transformers_parts.HEADS | {
    "Beit": "ForImageClassification", "Bloom": "ForCausalLM", "Camembert": "ForMaskedLM", "Cohere": "ForCausalLM", "DPT": "ForDepthEstimation",
    "Data2VecAudio": "ForCTC", "Dinov2": "ForImageClassification", "Falcon": "ForCausalLM", "FocalNet": "ForImageClassification",
    "GLPN": "ForDepthEstimation", "GPTBigCode": "ForCausalLM", "GPTNeo": "ForCausalLM", "GPTNeoX": "ForCausalLM", "Gemma": "ForCausalLM",
    "Gemma2": "ForCausalLM", "Granite": "ForCausalLM", "Llama": "ForCausalLM", "LongT5": "ForConditionalGeneration",
    "M2M100": "ForConditionalGeneration", "Mamba": "ForCausalLM", "Mixtral": "ForCausalLM", "ModernBert": "ForMaskedLM", "Mpt": "ForCausalLM",
    "Olmo2": "ForCausalLM", "PatchTST": "ForPrediction", "Phi": "ForCausalLM", "Phi3": "ForCausalLM", "Qwen2": "ForCausalLM",
    "Qwen3": "ForCausalLM", "Qwen3Moe": "ForCausalLM", "SmolLM3": "ForCausalLM", "Starcoder2": "ForCausalLM",
    "WavLM": "ForCTC", "XLMRoberta": "ForMaskedLM", "Yolos": "ForObjectDetection",
}


# Keys and values of the words before, of 2 layers.
PAST = [f"past_{layer}_{part}" for layer in range(2) for part in ("key", "value")]
# Open dimensions and their largest sizes (see make.py), if not the usual ones.
DIMENSIONS = {"LlamaDecode": {(name, 2): "past" for name in PAST}}
OPEN = {"LlamaDecode": {"past": 48}}


def decode(config):
    """One step of a decoder: the next word, and the keys and values of the words before it, as arguments and results."""
    def function(model, input_ids, position_ids, *past):
        pairs = [tuple(past[k:k + 2]) for k in range(0, len(past), 2)]
        cache = transformers.DynamicCache.from_legacy_cache(pairs)
        found = model(input_ids, None, position_ids, cache, use_cache=True)
        return found.logits, *(part for pair in found.past_key_values.to_legacy_cache() for part in pair)

    inputs = {"input_ids": whole(200, 1, 1), "position_ids": np.array([[11]])}
    return Function(function, transformers.LlamaForCausalLM(config).eval()), {**inputs, **{name: numbers(1, 2, 11, 16) for name in PAST}}


def inputs_of(name, config):
    if name == "AST":
        return {"input_values": numbers(1, 64, 32)}
    if name in ("Data2VecAudio", "WavLM"):
        return {"input_values": numbers(1, 1600)}
    if name == "PatchTST":
        return {"past_values": numbers(1, 64, 3)}
    if name == "DecisionTransformer":
        return {"states": numbers(1, 6, 11), "actions": numbers(1, 6, 3), "returns_to_go": numbers(1, 6, 1), "timesteps": whole(50, 1, 6)}
    if name == "Hiera":
        return {"pixel_values": numbers(1, 3, 64, 64)}
    found = transformers_parts.inputs_of(name, config)
    found = {key: value.astype(np.int64) if value.dtype == np.int32 else value for key, value in found.items()}
    if "input_ids" in found and name not in ("Mamba", "CLIP"):
        # The last words of a text are padding.
        found["attention_mask"] = (np.arange(16) < 13).astype(np.int64)[None]
    return found


def build(name, exporter):
    torch.manual_seed(0)
    config = transformers_parts.config_of(name.removesuffix("Decode"))
    # The kernels of PyTorch's attention have ops that TorchScript does not write.
    if exporter == "script":
        config._attn_implementation = "eager"
        # Masks that vmap computes cannot be traced.
        masking_utils.sdpa_mask = masking_utils.sdpa_mask_older_torch
    if name == "LlamaDecode":
        return decode(config)
    kind = {"Gemma3Text": "Gemma3ForCausalLM", "Marian": "MarianMTModel"}.get(name, f"{name}{HEADS.get(name, 'Model')}")
    model = getattr(transformers, kind)(config).eval()
    inputs = inputs_of(name, config)
    accepted = inspect.signature(model.forward).parameters
    inputs = {key: value for key, value in inputs.items() if key in accepted}
    cache = {"use_cache": False} if "use_cache" in accepted else {}

    def function(model, *given):
        return tuple(model(**dict(zip(inputs, given)), **cache, return_dict=True).values())

    return Function(function, model), inputs
