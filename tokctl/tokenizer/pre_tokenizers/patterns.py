"""Split patterns by name: the regular expressions that are applied in turn, each to the pieces that the ones before made.

Matches and what lies between them all become words; nothing is dropped (Hugging Face's behaviour "isolated").
The texts are written so that tiktoken, tokenizers and Python's ``regex`` all read them alike: without possessive
quantifiers (``{1,3}+`` repeats twice in tokenizers' engine) and without ``$`` (which is every line end there).
"""

from __future__ import annotations

_GPT2 = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""

# tiktoken (0.14) tries \s++$ before \s*[\r\n]: white space at the very end of the text stays one word even
# if it holds line breaks. (?![\s\S]) is the end of the text for every engine.
_CL100K = (
    r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"""
    r"""|\s+(?![\s\S])|\s*[\r\n]+|\s+(?!\S)|\s+"""
)

_LLAMA3 = (
    r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"""
    r"""|\s*[\r\n]+|\s+(?!\S)|\s+"""
)

_O200K = (
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"""
    r"""|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"""
    r"""|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
)

_DEEPSEEK = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
    r"""| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
)

NAMED: dict[str, tuple[str, ...]] = {
    # GPT-2, r50k and p50k; also tokenizers' ByteLevel(use_regex=True)
    "gpt2": (_GPT2,),
    # tiktoken's cl100k_base
    "cl100k": (_CL100K,),
    # tiktoken's o200k_base and o200k_harmony
    "o200k": (_O200K,),
    # Llama 3; cl100k as it is written in most tokenizer.json files
    "llama3": (_LLAMA3,),
    # Qwen 2 and 2.5: as llama3, digits one by one
    "qwen2": (_LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}"),),
    # DeepSeek V3: numbers of up to three digits, runs of CJK and kana, then the rest
    "deepseek-v3": (r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+", _DEEPSEEK),
    # StarCoder: each digit alone, then gpt2 on what lies between (a space before a number stays apart)
    "starcoder": (r"\p{N}", _GPT2),
    # Digit policies on gpt2's other rules: a number is cut from the left into pieces of 1, 2 or 3 digits, the space
    # before it a word of its own
    "gpt2-digits1": (_GPT2.replace(r" ?\p{N}+", r"\p{N}"),),
    "gpt2-digits2": (_GPT2.replace(r" ?\p{N}+", r"\p{N}{1,2}"),),
    "gpt2-digits3": (_GPT2.replace(r" ?\p{N}+", r"\p{N}{1,3}"),),
}
