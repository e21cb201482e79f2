"""Count, fit, compare and use a tokenizer from Python, without touching the disk until it is saved.

python examples/04_python_api.py [OUT]
"""

import json
import os
import sys
from pathlib import Path

import tokctl

corpus = Path(os.environ.get("CORPUS", Path(__file__).parent / "corpus")) / "udhr"
out = Path(sys.argv[1] if len(sys.argv) > 1 else "python-out")

# Articles 28 to 30 are for validation, in every language; the others are for fitting.
fitting, validation = [], []
for path in sorted(corpus.glob("*.jsonl")):
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        held_out = row["group"] in ("article-28", "article-29", "article-30")
        (validation if held_out else fitting).append(row["text"])

# Words are counted once per pattern and serve every fit.
counts = tokctl.count_words(fitting, "gpt2")
print(f"{counts.n_words:,} distinct words in {len(fitting):,} texts")

# One fit, several sizes: the smaller tokenizer is a prefix of the larger.
sizes = tokctl.fit("bpe", counts, vocab_size=[1000, 4000])

comparison = tokctl.compare({"small": sizes[1000], "large": sizes[4000]}, validation, baseline="small")
for name in ("small", "large"):
    row = comparison.row(name, "bytes_per_token.micro")
    low, high = row.ci95
    print(f"{name}: {row.value:.3f} bytes per token, 95 % interval {low:.3f} to {high:.3f}")

tokenizer = sizes[4000]
text = "Alle Menschen sind frei und gleich an Würde und Rechten geboren."
ids = tokenizer.encode(text)
assert tokenizer.decode(ids) == text
print(f"{len(text)} characters, {len(ids)} tokens: {[tokenizer.token_bytes(i) for i in ids[:4]]} ...")

# Offsets say where each token is in the text.
encoding = tokenizer.encode_with_offsets(text, unit="raw_codepoints")
start, stop = encoding.offsets[0]
print(f"the first token is {text[start:stop]!r}")

tokenizer.save(out)
again = tokctl.load(out)
assert again.encode(text) == ids
assert again.semantic_hash == tokenizer.semantic_hash
print(f"saved to {out}")
