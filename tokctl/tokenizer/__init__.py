"""A tokenizer: normalizer, pre-tokenizer, model, post-processor, decoder and added tokens."""
