"""Reading and writing tokenizer files, natively and for other libraries."""
