"""The models a tokenizer can hold."""
