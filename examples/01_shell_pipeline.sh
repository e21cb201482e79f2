#!/bin/sh
# From raw files to an exported tokenizer, one command a stage.
#
#     sh examples/01_shell_pipeline.sh [OUT]
#
# Run it twice: the second run does nothing, because nothing that matters has changed. CORPUS names another corpus with
# the same four folders.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
corpus=${CORPUS:-$here/corpus}
out=${1:-shell-out}

# Raw JSONL, HTML, WARC and source code to documents. What can't become one is in rejects.parquet, with the reason.
tokctl extract "$corpus/udhr" "$corpus/pages" "$corpus/code" "$corpus/mirror" -o "$out/documents" \
    --id-field id --language-field language --group-field group --license-field license

# Equal texts first, then near duplicates, which are verified exactly before they are dropped. The mirror's copies go.
keep=source-priority=udhr,pages,code,mirror
tokctl dedup exact "$out/documents" -o "$out/exact" --fold-case --collapse-space --keep "$keep"
tokctl dedup minhash "$out/exact" -o "$out/distinct" --threshold 0.8 --keep "$keep"

# By group: all translations of an article go to the same side.
tokctl split "$out/distinct" -o "$out/split" --group-by group_id --validation 0.1 --test 0.1 --seed 10

# Count once, fit once, get two sizes.
tokctl count "$out/split/train" -o "$out/words" --pattern gpt2 --special '<|endoftext|>'
tokctl fit bpe --counts "$out/words" -o "$out/tokenizers" --vocab-size 2k,8k \
    --special '<|endoftext|>' --eos '<|endoftext|>'

# Exit code 1 when a gate fails.
tokctl compare --validation "$out/split/validation" -o "$out/report" \
    --candidate small="$out/tokenizers/2000" --candidate large="$out/tokenizers/8000" \
    --baseline small --gates "$here/gates.toml"

tokctl export huggingface --tokenizer "$out/tokenizers/8000" -o "$out/huggingface"
tokctl export tiktoken --tokenizer "$out/tokenizers/8000" -o "$out/tiktoken"

# There and back: the same bytes.
printf 'Tous les êtres humains naissent libres.' > "$out/sentence.txt"
tokctl encode --tokenizer "$out/tokenizers/8000" "$out/sentence.txt" > "$out/sentence.jsonl"
tokctl decode --tokenizer "$out/tokenizers/8000" "$out/sentence.jsonl" | cmp - "$out/sentence.txt"

tokctl verify "$out/split" "$out/tokenizers"
