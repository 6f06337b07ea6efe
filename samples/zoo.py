#!/usr/bin/env python3
"""A zoo of small transformers with random weights and awkward sizes, exported in several ways, and tpc tried on all of them.

    python samples/zoo.py export OUT [PATTERN ...]     write OUT/NAME/model.onnx with data sets, expected outputs from ONNX Runtime
    python samples/zoo.py test OUT [PATTERN ...] --build BUILD [--tp 1 2 3 4 8] [--plain] [--only-sp]
    python samples/zoo.py list

test runs tpc-shard and tpc-run --local for every model, number of ranks and data set, with and without --sp, and prints what failed
and each plan's collectives. A model without a sequence dimension is not run with --sp. Sizes are chosen to divide badly: a vocabulary
of 257, 3, 5 or 6 heads, 1 to 3 key-value heads, odd intermediate sizes.

export needs from PyPI: torch transformers optimum-onnx onnx onnxruntime onnxscript; test only needs Python.
"""
import argparse
import collections
import fnmatch
import json
import os
import subprocess
import sys
import tempfile

TEXT = dict(vocab_size=257, max_position_embeddings=64, num_hidden_layers=2)
GEN = "text-generation-with-past"


def llm(heads=6, kv=None, size=48, inner=100, **more):
    fields = dict(TEXT, hidden_size=size, intermediate_size=inner, num_attention_heads=heads)
    if kv:
        fields["num_key_value_heads"] = kv
    return dict(fields, **more)


def encoder(heads=3, size=48, inner=70, **more):
    return dict(TEXT, hidden_size=size, intermediate_size=inner, num_attention_heads=heads, **more)


def image(heads=3, size=48, inner=70, **more):
    return dict(hidden_size=size, intermediate_size=inner, num_hidden_layers=2, num_attention_heads=heads, image_size=32, patch_size=8, **more)


SPEECH = dict(hidden_size=48, intermediate_size=70, num_hidden_layers=2, num_attention_heads=3, vocab_size=37, conv_dim=(16, 16),
              conv_stride=(5, 2), conv_kernel=(10, 3), num_feat_extract_layers=2, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4)
PAIR = dict(vocab_size=257, d_model=48, encoder_layers=2, decoder_layers=2, encoder_attention_heads=6, decoder_attention_heads=6,
            encoder_ffn_dim=70, decoder_ffn_dim=100, max_position_embeddings=64, decoder_start_token_id=2, pad_token_id=1,
            bos_token_id=0, eos_token_id=2, forced_eos_token_id=None)
WHISPER = dict(PAIR, num_mel_bins=16, max_source_positions=1500, max_target_positions=64, begin_suppress_tokens=None, suppress_tokens=None)
MOE = llm(6, 2, num_experts_per_tok=2)
LATENT = dict(llm(6, 6), n_routed_experts=8, num_experts_per_tok=2, n_group=4, topk_group=2, moe_intermediate_size=38, n_shared_experts=1,
              q_lora_rank=20, kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=8, v_head_dim=12, first_k_dense_replace=1)
DBRX = dict(vocab_size=257, d_model=48, n_heads=6, n_layers=2, max_seq_len=64, attn_config=dict(kv_n_heads=2, clip_qkv=8.0, rope_theta=1e4),
            ffn_config=dict(ffn_hidden_size=70, moe_num_experts=4, moe_top_k=2, ffn_act_fn=dict(name="silu")))
SWITCH = dict(vocab_size=257, d_model=48, d_kv=10, d_ff=70, num_layers=2, num_heads=5, num_experts=4, num_sparse_encoder_layers=1, expert_capacity=64)
PLAIN_TEXT = dict(bos_token_id=0, eos_token_id=1, pad_token_id=0)
T5 = dict(vocab_size=257, d_model=48, d_kv=10, d_ff=70, num_layers=2, num_heads=5, decoder_start_token_id=0)

# name -> model class, config fields, task, options of the export
OPTIMUM = {
    "bloom":           ("BloomForCausalLM", dict(vocab_size=257, hidden_size=48, n_layer=2, n_head=6), GEN),
    "bloom-5h":        ("BloomForCausalLM", dict(vocab_size=257, hidden_size=40, n_layer=2, n_head=5), GEN),
    "gemma":           ("GemmaForCausalLM", llm(6, 1, head_dim=10, **PLAIN_TEXT), GEN),
    "gemma2":          ("Gemma2ForCausalLM", llm(6, 2, head_dim=10, sliding_window=4, query_pre_attn_scalar=10, **PLAIN_TEXT), GEN),
    "gemma3":          ("Gemma3ForCausalLM", llm(6, 2, head_dim=10, sliding_window=4, query_pre_attn_scalar=10, **PLAIN_TEXT), GEN),
    "gpt-neox":        ("GPTNeoXForCausalLM", llm(3, rotary_pct=0.25), GEN),
    "gpt-neox-seq":    ("GPTNeoXForCausalLM", llm(6, rotary_pct=0.5, use_parallel_residual=False), GEN),
    "falcon-mqa":      ("FalconForCausalLM", dict(vocab_size=257, hidden_size=48, num_hidden_layers=2, num_attention_heads=6, multi_query=True,
                                                  new_decoder_architecture=False), GEN),
    "falcon-new":      ("FalconForCausalLM", dict(vocab_size=257, hidden_size=48, num_hidden_layers=2, num_attention_heads=6, num_kv_heads=6,
                                                  new_decoder_architecture=True), GEN),
    "falcon-alibi":    ("FalconForCausalLM", dict(vocab_size=257, hidden_size=48, num_hidden_layers=2, num_attention_heads=6, alibi=True,
                                                  multi_query=False, new_decoder_architecture=False, bias=True), GEN),
    "phi":             ("PhiForCausalLM", llm(6, partial_rotary_factor=0.5, **PLAIN_TEXT), GEN),
    "phi3":            ("Phi3ForCausalLM", llm(6, 2, **PLAIN_TEXT), GEN),
    "mistral":         ("MistralForCausalLM", llm(6, 3, sliding_window=5), GEN),
    "mistral-5h":      ("MistralForCausalLM", llm(5, 1, size=35, inner=67, head_dim=14), GEN),
    "opt":             ("OPTForCausalLM", dict(vocab_size=257, hidden_size=48, ffn_dim=100, num_hidden_layers=2, num_attention_heads=6,
                                               max_position_embeddings=64, word_embed_proj_dim=48), GEN),
    "opt-post":        ("OPTForCausalLM", dict(vocab_size=257, hidden_size=48, ffn_dim=100, num_hidden_layers=2, num_attention_heads=3,
                                               max_position_embeddings=64, word_embed_proj_dim=32, do_layer_norm_before=False), GEN),
    "gpt-neo":         ("GPTNeoForCausalLM", dict(vocab_size=257, hidden_size=48, num_layers=2, num_heads=6, window_size=4,
                                                  max_position_embeddings=64, attention_types=[[["global", "local"], 1]]), GEN),
    "gptj":            ("GPTJForCausalLM", dict(vocab_size=257, n_embd=48, n_layer=2, n_head=6, n_positions=64, rotary_dim=4), GEN),
    "codegen":         ("CodeGenForCausalLM", dict(vocab_size=257, n_embd=96, n_layer=2, n_head=12, n_positions=64, rotary_dim=4), GEN),
    "gpt-bigcode":     ("GPTBigCodeForCausalLM", dict(vocab_size=257, n_embd=48, n_layer=2, n_head=6, n_positions=64), GEN),
    "mpt":             ("MptForCausalLM", dict(vocab_size=257, d_model=48, n_layers=2, n_heads=6, max_seq_len=64), GEN),
    "stablelm":        ("StableLmForCausalLM", llm(6, 3, partial_rotary_factor=0.25), GEN),
    "olmo":            ("OlmoForCausalLM", llm(6, 3, clip_qkv=4.0), GEN),
    "olmo2":           ("Olmo2ForCausalLM", llm(6, 3), GEN),
    "qwen2-3h":        ("Qwen2ForCausalLM", llm(3, 1, size=42, inner=61), GEN),
    "qwen3":           ("Qwen3ForCausalLM", llm(6, 2, head_dim=12), GEN),
    "granite":         ("GraniteForCausalLM", llm(6, 2, attention_multiplier=0.3, residual_multiplier=0.5), GEN),
    "llama-tied":      ("LlamaForCausalLM", llm(12, 3, size=72, inner=77, tie_word_embeddings=True), GEN),
    "llama-bias":      ("LlamaForCausalLM", llm(6, 2, attention_bias=True, mlp_bias=True), GEN),
    "llama-op14":      ("LlamaForCausalLM", llm(6, 2), GEN, dict(opset=14)),
    "llama-nopast":    ("LlamaForCausalLM", llm(6, 2), "text-generation"),
    "smollm3":         ("SmolLM3ForCausalLM", llm(6, 2, **PLAIN_TEXT), GEN),
    "gpt2-5h":         ("GPT2LMHeadModel", dict(vocab_size=257, n_positions=64, n_embd=35, n_layer=2, n_head=5), GEN),
    "gpt2-op14":       ("GPT2LMHeadModel", dict(vocab_size=257, n_positions=64, n_embd=36, n_layer=2, n_head=3), GEN, dict(opset=14)),
    "gpt2-nopast":     ("GPT2LMHeadModel", dict(vocab_size=257, n_positions=64, n_embd=36, n_layer=2, n_head=3), "text-generation", dict(opset=17)),
    "distilbert":      ("DistilBertForMaskedLM", dict(vocab_size=257, dim=48, hidden_dim=70, n_layers=2, n_heads=3), "fill-mask"),
    "roberta":         ("RobertaForSequenceClassification", encoder(num_labels=3), "text-classification"),
    "albert":          ("AlbertForMaskedLM", encoder(embedding_size=20), "fill-mask"),
    "electra":         ("ElectraForTokenClassification", encoder(embedding_size=20, num_labels=5), "token-classification"),
    "bert-qa":         ("BertForQuestionAnswering", encoder(5, 40), "question-answering"),
    "bert-op14":       ("BertForMaskedLM", encoder(6), "fill-mask", dict(opset=14)),
    "bert-features":   ("BertModel", encoder(3), "feature-extraction"),
    "deberta":         ("DebertaForMaskedLM", encoder(relative_attention=True, pos_att_type=["c2p", "p2c"]), "fill-mask"),
    "deberta-v2":      ("DebertaV2ForMaskedLM", encoder(relative_attention=True, pos_att_type=["c2p", "p2c"], position_buckets=8,
                                                        norm_rel_ebd="layer_norm", share_att_key=True), "fill-mask"),
    "mpnet":           ("MPNetForMaskedLM", encoder(), "fill-mask"),
    "xlm-roberta":     ("XLMRobertaForMaskedLM", encoder(6), "fill-mask"),
    "camembert":       ("CamembertForTokenClassification", encoder(6), "token-classification"),
    "modernbert":      ("ModernBertForMaskedLM", encoder(pad_token_id=0, local_attention=4, global_attn_every_n_layers=2, reference_compile=False,
                                                         bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2), "fill-mask"),
    "esm":             ("EsmForMaskedLM", encoder(pad_token_id=1, mask_token_id=4, position_embedding_type="rotary"), "fill-mask"),
    "mobilebert":      ("MobileBertForMaskedLM", dict(TEXT, hidden_size=48, embedding_size=32, intermediate_size=70, num_attention_heads=3,
                                                      intra_bottleneck_size=24, true_hidden_size=24), "fill-mask"),
    "squeezebert":     ("SqueezeBertForMaskedLM", encoder(4, 48, 80, embedding_size=48, q_groups=2, k_groups=2, v_groups=2), "fill-mask"),
    "vit-3h":          ("ViTForImageClassification", image(num_labels=7), "image-classification"),
    "deit":            ("DeiTForImageClassification", image(num_labels=7), "image-classification"),
    "beit":            ("BeitForImageClassification", image(num_labels=7, use_relative_position_bias=True), "image-classification"),
    "swin":            ("SwinForImageClassification", dict(image_size=32, patch_size=4, embed_dim=24, depths=[2, 2], num_heads=[3, 6],
                                                           window_size=4, num_labels=7), "image-classification"),
    "convnext":        ("ConvNextForImageClassification", dict(hidden_sizes=[12, 18, 24, 30], depths=[1, 1, 1, 1], image_size=32, num_labels=7),
                        "image-classification"),
    "resnet":          ("ResNetForImageClassification", dict(embedding_size=12, hidden_sizes=[12, 18, 24, 30], depths=[1, 1, 1, 1],
                                                             layer_type="basic", num_labels=7), "image-classification"),
    "segformer":       ("SegformerForImageClassification", dict(num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[12, 24],
                                                                patch_sizes=[7, 3], strides=[4, 2], num_attention_heads=[1, 3],
                                                                mlp_ratios=[2, 2], num_labels=7), "image-classification"),
    "clip":            ("CLIPModel", dict(projection_dim=20, text_config=encoder(eos_token_id=2, bos_token_id=0, projection_dim=20),
                                          vision_config=image(projection_dim=20)), "zero-shot-image-classification"),
    "siglip":          ("SiglipModel", dict(text_config=encoder(3), vision_config=image(3)), "zero-shot-image-classification"),
    "wav2vec2":        ("Wav2Vec2ForCTC", SPEECH, "automatic-speech-recognition"),
    "hubert":          ("HubertForCTC", SPEECH, "automatic-speech-recognition"),
    "whisper":         ("WhisperForConditionalGeneration", WHISPER, "automatic-speech-recognition-with-past"),
    "bart":            ("BartForConditionalGeneration", PAIR, "text2text-generation-with-past"),
    "marian":          ("MarianMTModel", dict(PAIR, scale_embedding=True), "text2text-generation-with-past"),
    "pegasus":         ("PegasusForConditionalGeneration", PAIR, "text2text-generation-with-past"),
    "t5-5h":           ("T5ForConditionalGeneration", T5, "text2text-generation-with-past"),
    "t5-gated":        ("T5ForConditionalGeneration", dict(T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
                        "text2text-generation-with-past"),
    "t5-merged":       ("T5ForConditionalGeneration", T5, "text2text-generation-with-past", dict(merged=True)),
    "qwen3-moe":       ("Qwen3MoeForCausalLM", dict(MOE, num_experts=5, head_dim=12, moe_intermediate_size=38), GEN),
    "gpt-oss":         ("GptOssForCausalLM", dict(MOE, num_local_experts=4, head_dim=8, sliding_window=4), GEN),
    "deepseek-v3":     ("DeepseekV3ForCausalLM", LATENT, GEN),
    "mixtral":         ("MixtralForCausalLM", dict(MOE, num_local_experts=4), GEN, dict(like="llama")),
    "olmoe":           ("OlmoeForCausalLM", dict(MOE, num_experts=6), GEN, dict(like="llama")),
    "flex-olmo":       ("FlexOlmoForCausalLM", dict(MOE, num_experts=5, **PLAIN_TEXT), GEN, dict(like="llama")),
    "phimoe":          ("PhimoeForCausalLM", dict(MOE, num_local_experts=5), GEN, dict(like="llama")),
    "glm4-moe":        ("Glm4MoeForCausalLM", dict(MOE, n_routed_experts=4, moe_intermediate_size=38, head_dim=8, n_group=2, topk_group=1), GEN,
                        dict(like="llama")),
    "ernie-moe":       ("Ernie4_5_MoeForCausalLM", dict(MOE, moe_num_experts=4, moe_k=2, moe_intermediate_size=38), "text-generation", dict(like="llama")),
    "dbrx":            ("DbrxForCausalLM", DBRX, GEN, dict(like="llama")),
}

# name -> model class, config fields, opset, attention, form (logits, cache, or keyword arguments of an encoder), options of the export
DYNAMO = {
    "dy-gpt2-18":      ("GPT2LMHeadModel", dict(vocab_size=257, n_positions=64, n_embd=36, n_layer=2, n_head=3), 18, "sdpa", "cache"),
    "dy-gpt2-20-raw":  ("GPT2LMHeadModel", dict(vocab_size=257, n_positions=64, n_embd=36, n_layer=2, n_head=3), 20, "eager", "logits", dict(optimize=False)),
    "dy-llama-18":     ("LlamaForCausalLM", llm(6, 2), 18, "sdpa", "cache"),
    "dy-llama-20-raw": ("LlamaForCausalLM", llm(6, 2), 20, "sdpa", "cache", dict(optimize=False)),
    "dy-llama-23-raw": ("LlamaForCausalLM", llm(6, 3), 23, "eager", "logits", dict(optimize=False)),
    "dy-qwen2-20":     ("Qwen2ForCausalLM", llm(6, 1), 20, "eager", "cache"),
    "dy-mistral-20":   ("MistralForCausalLM", llm(6, 3, sliding_window=5), 20, "sdpa", "cache"),
    "dy-gemma2-20":    ("Gemma2ForCausalLM", llm(6, 2, head_dim=10, sliding_window=4, query_pre_attn_scalar=10, **PLAIN_TEXT), 20, "eager", "logits"),
    "dy-phi3-20":      ("Phi3ForCausalLM", llm(6, 2, **PLAIN_TEXT), 20, "sdpa", "cache"),
    "dy-phi-18":       ("PhiForCausalLM", llm(6, 3, partial_rotary_factor=0.5, **PLAIN_TEXT), 18, "eager", "logits"),
    "dy-neox-20":      ("GPTNeoXForCausalLM", llm(6, rotary_pct=0.5), 20, "sdpa", "cache"),
    "dy-falcon-20":    ("FalconForCausalLM", dict(vocab_size=257, hidden_size=48, num_hidden_layers=2, num_attention_heads=6, multi_query=True,
                                                  new_decoder_architecture=False), 20, "sdpa", "logits"),
    "dy-bloom-18":     ("BloomForCausalLM", dict(vocab_size=257, hidden_size=48, n_layer=2, n_head=6), 18, "eager", "logits"),
    "dy-opt-20":       ("OPTForCausalLM", dict(vocab_size=257, hidden_size=48, ffn_dim=100, num_hidden_layers=2, num_attention_heads=6,
                                               max_position_embeddings=64, word_embed_proj_dim=48), 20, "sdpa", "logits"),
    "dy-olmo2-20":     ("Olmo2ForCausalLM", llm(6, 3), 20, "sdpa", "cache"),
    "dy-bert-18":      ("BertForMaskedLM", encoder(3), 18, "sdpa", ("input_ids", "attention_mask")),
    "dy-bert-20-raw":  ("BertForMaskedLM", encoder(6), 20, "eager", ("input_ids", "attention_mask"), dict(optimize=False)),
    "dy-bert-23":      ("BertModel", encoder(6), 23, "sdpa", ("input_ids", "attention_mask")),
    "dy-roberta-20":   ("RobertaModel", encoder(3), 20, "eager", ("input_ids", "attention_mask")),
    "dy-vit-20":       ("ViTForImageClassification", image(num_labels=7), 20, "sdpa", ("pixel_values",)),
    "dy-swin-20":      ("SwinForImageClassification", dict(image_size=32, patch_size=4, embed_dim=24, depths=[2, 2], num_heads=[3, 6],
                                                           window_size=4, num_labels=7), 20, "eager", ("pixel_values",)),
    "dy-t5enc-20":     ("T5EncoderModel", T5, 20, "eager", ("input_ids", "attention_mask")),
    "dy-bartenc-20":   ("BartModel", PAIR, 20, "sdpa", ("input_ids", "attention_mask")),
    "dy-olmoe-20":     ("OlmoeForCausalLM", dict(MOE, num_experts=6), 20, "sdpa", "cache"),
    "dy-flex-olmo-20": ("FlexOlmoForCausalLM", dict(MOE, num_experts=5, **PLAIN_TEXT), 20, "sdpa", "cache"),
    "dy-granitemoe-20": ("GraniteMoeForCausalLM", dict(MOE, num_local_experts=4), 20, "eager", "logits"),
    "dy-jetmoe-20":    ("JetMoeForCausalLM", dict(vocab_size=257, hidden_size=48, num_hidden_layers=2, num_key_value_heads=3, kv_channels=8,
                                                  intermediate_size=70, num_local_experts=4, max_position_embeddings=64), 20, "eager", "logits"),
    "ts-switch-18":    ("SwitchTransformersEncoderModel", SWITCH, 18, "eager", ("input_ids", "attention_mask"), dict(dynamo=False)),
}


# ---- export --------------------------------------------------------------------------------------------------------------------------

def build(class_name, fields, attention=None):
    import torch
    import transformers as hf
    model_class = getattr(hf, class_name)
    torch.manual_seed(11)
    config = model_class.config_class(**fields)
    model = model_class._from_config(config, attn_implementation=attention) if attention else model_class(config)
    with torch.no_grad():          # nothing stays at a neutral value, so that a wrong slice anywhere changes the outputs
        for weight in model.parameters():
            if weight.dim() < 2:
                weight.copy_(torch.randn_like(weight) * 0.3 + (1.0 if weight.numel() and weight.float().mean() > 0.5 else 0.0))
            else:
                weight.copy_(torch.randn_like(weight) / weight[0].numel() ** 0.5)
    return model.eval()


def config_like(family, model, task):
    """What optimum is told of a model that it does not know: to export it as one of another family."""
    from optimum.exporters.tasks import TasksManager
    if not family:
        return None
    make = TasksManager.get_exporter_config_constructor("onnx", model_type=family, task=task)
    past = task.endswith("with-past")
    return {"model": make(model.config, use_past=past, use_past_in_inputs=past)}


def with_optimum(name, entry, out):
    from optimum.exporters.onnx import main_export
    class_name, fields, task, *rest = entry
    options = rest[0] if rest else {}
    merged = options.get("merged", False)
    with tempfile.TemporaryDirectory() as saved, tempfile.TemporaryDirectory() as raw:
        model = build(class_name, fields)
        model.save_pretrained(saved)
        main_export(saved, raw, task=task, do_validation=False, no_post_process=not merged, opset=options.get("opset"), device="cpu",
                    custom_onnx_configs=config_like(options.get("like"), model, task))
        files = sorted(f for f in os.listdir(raw) if f.endswith(".onnx"))
        for file in [f for f in files if "merged" in f] if merged else files:
            part = file[:-len(".onnx")].removesuffix("_model")
            folder = os.path.join(out, name if part == "model" or merged else f"{name}-{part}")
            os.makedirs(folder, exist_ok=True)
            os.replace(os.path.join(raw, file), os.path.join(folder, "model.onnx"))
            for extra in os.listdir(raw):
                if extra.startswith(file + "_data"):
                    os.replace(os.path.join(raw, extra), os.path.join(folder, extra))
            yield folder


def wrap(model, form):
    """What is exported, its example inputs, their names and which of their dimensions are dynamic."""
    import torch
    from transformers import DynamicCache

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids):
            return self.model(input_ids=input_ids, use_cache=False).logits

    class Cached(Logits):
        def forward(self, input_ids, attention_mask, position_ids, past):
            pairs = [(past[i], past[i + 1]) for i in range(0, len(past), 2)]
            more = {} if "position_ids" not in self.model.forward.__code__.co_varnames else {"position_ids": position_ids}
            y = self.model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=DynamicCache.from_legacy_cache(pairs),
                           use_cache=True, **more)
            return (y.logits, *[t for pair in y.past_key_values.to_legacy_cache() for t in pair])

    class Named(Logits):
        def forward(self, *args):
            return self.model(**dict(zip(form, args)))[0]

    dynamic = torch.export.Dim.DYNAMIC
    ids = torch.randint(2, 200, (2, 12))
    if form == "logits":
        return Logits(), (ids,), ["input_ids"], {"input_ids": {0: dynamic, 1: dynamic}}
    if form == "cache":
        config = model.config
        kv = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        past = [torch.randn(2, kv, 5, size) for _ in range(2 * config.num_hidden_layers)]
        names = [f"past_key_values.{i // 2}.{'key' if i % 2 == 0 else 'value'}" for i in range(len(past))]
        args = (ids, torch.ones(2, 17, dtype=torch.int64), torch.arange(5, 17)[None].repeat(2, 1), past)
        row = {0: dynamic, 1: dynamic}
        return Cached(), args, ["input_ids", "attention_mask", "position_ids", *names], {
            "input_ids": row, "attention_mask": row, "position_ids": row, "past": [{0: dynamic, 2: dynamic} for _ in past]}
    example = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "pixel_values": torch.randn(2, 3, 32, 32)}
    axes = {"input_ids": {0: dynamic, 1: dynamic}, "attention_mask": {0: dynamic, 1: dynamic}, "pixel_values": {0: dynamic}}
    return Named(), tuple(example[n] for n in form), list(form), {"args": tuple(axes[n] for n in form)}


def with_dynamo(name, entry, out):
    import torch
    class_name, fields, opset, attention, form, *rest = entry
    module, args, names, dynamic = wrap(build(class_name, fields, attention), form)
    options = {**dict(dynamo=True, dynamic_shapes=dynamic, external_data=False, verbose=False), **(rest[0] if rest else {})}
    if not options["dynamo"]:
        options = dict(dynamo=False, dynamic_axes={name: {0: "batch", 1: "sequence"} for name in names})
    folder = os.path.join(out, name)
    os.makedirs(folder, exist_ok=True)
    torch.onnx.export(module.eval(), args, os.path.join(folder, "model.onnx"), opset_version=opset, input_names=names, **options)
    yield folder


def make_input(spec, batch, new, past, vocab, rng, position):
    import numpy as np
    known = [d if isinstance(d, int) else None for d in spec.shape]
    if spec.name == "pixel_values":
        return rng.standard_normal((batch, 3, 32, 32), dtype=np.float32)
    if spec.name == "input_values":
        return rng.standard_normal((batch, 400), dtype=np.float32)
    if spec.name == "input_features":
        return rng.standard_normal((batch, known[1] or 16, known[2] or 3000), dtype=np.float32)
    if spec.name == "encoder_hidden_states":
        return rng.standard_normal((batch, known[1] or 6, known[2]), dtype=np.float32)
    if spec.name.startswith("past"):
        joined = [d for d in spec.shape[1:] if isinstance(d, str)]
        length = (20 if "20" in joined else 6) if ".encoder." in spec.name else past
        shape = [batch] + [k or length for k in known[1:]]
        if known[0] is None and isinstance(spec.shape[0], str) and "num_heads" in spec.shape[0]:
            raise ValueError(f"the first dimension of {spec.name} is {spec.shape[0]}")
        return rng.standard_normal(shape, dtype=np.float32)
    if spec.name == "use_cache_branch":
        return np.array([past > 0])
    if spec.name == "encoder_attention_mask":
        return np.ones((batch, 6), np.int64)
    shape = (known[0] or batch, known[1] or (past + new if spec.name == "attention_mask" else new))
    if spec.name == "attention_mask":
        mask = np.ones(shape, np.int64)
        mask[-1, 0 if position else -1] = 0       # padding: on the left where there is a cache
        return mask
    if spec.name == "position_ids":
        return np.arange(past, past + new, dtype=np.int64)[None].repeat(batch, 0)
    if spec.name == "token_type_ids":
        return rng.integers(0, 2, shape)
    if spec.type == "tensor(int64)":
        ids = rng.integers(3, vocab, shape)
        ids[:, -1] = 2
        return ids
    raise ValueError(f"no rule for input {spec.name} {spec.shape}")


def write_cases(folder, fields):
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import numpy_helper
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(os.path.join(folder, "model.onnx"), options, providers=["CPUExecutionProvider"])
    inputs = session.get_inputs()
    cached = any(i.name.startswith("past") for i in inputs)
    vocab = fields.get("vocab_size", 257)
    for k, (batch, new, past) in enumerate([(2, 7, 0), (3, 1, 5)] if cached else [(2, 7, 0), (1, 5, 0)]):
        if "with_past" in folder:
            past = past or 3
            new = 1
        rng = np.random.default_rng(k)
        feed = {i.name: make_input(i, batch, new, past, vocab, rng, cached) for i in inputs}
        case = os.path.join(folder, f"test_data_set_{k}")
        os.makedirs(case, exist_ok=True)
        results = session.run(None, feed)
        for j, i in enumerate(inputs):
            onnx.save_tensor(numpy_helper.from_array(feed[i.name], i.name), os.path.join(case, f"input_{j}.pb"))
        for j, (o, y) in enumerate(zip(session.get_outputs(), results)):
            onnx.save_tensor(numpy_helper.from_array(y, o.name), os.path.join(case, f"output_{j}.pb"))


def export(out, patterns):
    import warnings
    warnings.filterwarnings("ignore")
    import torch
    torch.set_num_threads(1)
    for table, exporter in ((OPTIMUM, with_optimum), (DYNAMO, with_dynamo)):
        for name in (n for n in table if chosen(n, patterns)):
            try:
                for folder in exporter(name, table[name], out):
                    try:
                        write_cases(folder, table[name][1])
                        print("ok", folder, flush=True)
                    except Exception as error:
                        print("NO DATA", folder, str(error)[:300].replace("\n", " "), flush=True)
            except Exception as error:
                print("NO EXPORT", name, type(error).__name__, str(error)[:300].replace("\n", " "), flush=True)


# ---- test ----------------------------------------------------------------------------------------------------------------------------

def run(command, seconds):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
        lines = (done.stderr + done.stdout).strip().splitlines()
        return done.returncode, lines
    except subprocess.TimeoutExpired:
        return -1, [f"no end after {seconds} s"]


def complaint(lines):
    return next((line for line in reversed(lines) if line.strip()), "")[:400]


def collectives(folder):
    with open(os.path.join(folder, "plan.json")) as f:
        plan = json.load(f)
    count = collections.Counter(c["op"] for c in plan["collectives"])
    kinds = " ".join(f"{op} {n}" for op, n in sorted(count.items())) or "none"
    return kinds + ("" if plan["cost"]["proven"] else " NOT PROVEN")


def try_plan(args, model, ranks, sp, scratch):
    """One number of ranks: shard, run every data set. False: the model has no sequence dimension for --sp."""
    folder = os.path.join(scratch, "out")
    label = f"{os.path.basename(model)} tp={ranks}{' --sp' if sp else ''}"
    shard = [os.path.join(args.build, "tpc-shard"), os.path.join(model, "model.onnx"), "--tp", str(ranks), "-q", "--force", "-o", folder]
    status, lines = run(shard + (["--sp"] if sp else []), 120)
    if status:
        if sp and status == 1 and any("--sp" in line for line in lines):
            return 0
        print(f"SHARD {label}: status {status}: {complaint(lines)}", flush=True)
        return 1
    failed = 0
    for case in sorted(c for c in os.listdir(model) if c.startswith("test_data_set")):
        status, lines = run([os.path.join(args.build, "tpc-run"), folder, "--local", str(ranks), "--threads", "1", "--test-data",
                             os.path.join(model, case)], 120)
        if status:
            failed += 1
            print(f"RUN {label} {case}: status {status}: {complaint(lines)}", flush=True)
    if ranks > 1:
        print(f"plan {label}: {collectives(folder)}", flush=True)
    return failed


def test(args):
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in sorted(os.listdir(args.out)):
            model = os.path.join(args.out, name)
            if not chosen(name, args.patterns) or not os.path.exists(os.path.join(model, "test_data_set_0", "output_0.pb")):
                continue
            for ranks in args.tp:
                for sp in (False, True):
                    if not (sp and (ranks == 1 or args.plain)) and (sp or not args.only_sp):
                        failed += try_plan(args, model, ranks, sp, scratch)
    print(f"{failed} failures")
    return 1 if failed else 0


def chosen(name, patterns):
    return not patterns or any(fnmatch.fnmatch(name, p) for p in patterns)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["export", "test", "list"])
    parser.add_argument("out", nargs="?")
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--build", default=".")
    parser.add_argument("--tp", type=int, nargs="+", default=[1, 2, 3, 4, 8])
    parser.add_argument("--plain", action="store_true", help="without --sp only")
    parser.add_argument("--only-sp", action="store_true")
    args = parser.parse_args()
    if args.action == "list":
        print("\n".join([*OPTIMUM, *DYNAMO]))
    elif args.action == "export":
        export(args.out, args.patterns)
    else:
        sys.exit(test(args))


if __name__ == "__main__":
    main()
