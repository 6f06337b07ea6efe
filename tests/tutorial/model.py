#!/usr/bin/env python3
"""model.py FOLDER PROMPT TOKENS: a small random model of the family that docs/tutorial.md takes, with a byte-level BPE tokenizer trained on this
repository's pages. Prints what transformers says after PROMPT, the best token at a time."""
import glob
import os
import sys

import torch
import transformers as hf
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

PAGES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "*.md")
END = "<|endoftext|>"


def trained(size):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.train(sorted(glob.glob(PAGES)), trainers.BpeTrainer(vocab_size=size, special_tokens=[END], show_progress=False,
                                                          initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return hf.PreTrainedTokenizerFast(tokenizer_object=t, eos_token=END, bos_token=END)


def random_model(size):
    torch.manual_seed(1)
    model = hf.Qwen2ForCausalLM(hf.Qwen2Config(vocab_size=size, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                                               num_key_value_heads=2, max_position_embeddings=256, bos_token_id=0, eos_token_id=0))
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(8 if weight.dim() > 1 else 1)  # so that the best token is well ahead
    return model.eval()


def main():
    folder, prompt, tokens = sys.argv[1:]
    tokenizer = trained(1000)
    model = random_model(len(tokenizer))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    ids = tokenizer(prompt, return_tensors="pt").input_ids
    out = model.generate(ids, max_new_tokens=int(tokens), do_sample=False)
    sys.stdout.buffer.write((tokenizer.decode(out[0, ids.shape[1]:], skip_special_tokens=True) + "\n").encode())


main()
