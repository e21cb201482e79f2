"""Control ids come from a trusted insertion or an allowed name, whatever a text says; the special mask says which they are."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer.samples import SPECIALS, small

from tokctl.tokenizer.added_tokens import AddedToken
from tokctl.tokenizer.dropout import Dropout
from tokctl.tokenizer.models.bpe import BPE
from tokctl.tokenizer.template import Piece, Template
from tokctl.tokenizer.tokenizer import Tokenizer
from tokctl.tokenizer.vocabulary import Vocabulary

NAMES = (*SPECIALS, "<far>", "the")  # "the" is a token of the model that a file may list among its special tokens too
PARTS = [*NAMES, "<DOC>", " <DOC> ", "the dog", "<|end", "oftext|>", "<|pad", "|>", " ", "thé", "<<far>>", "a"]


def tokenizer(whole_words):
    """Control tokens outside the model and in it, an ordinary added token with flags, and a template around."""
    base = small("gpt2")
    model = base.model
    tokens = model.vocabulary.tokens()
    if whole_words:
        tokens = [token for token in tokens if token is not None] + [b"the"] * (b"the" not in tokens)
        model = BPE(Vocabulary.from_tokens(tokens), None, None, whole_words=True)
    last = max(base.vocab_size, len(tokens))
    inside = tokens.index(b"the")
    added = (
        AddedToken(last, SPECIALS[0]),
        AddedToken(last + 1, SPECIALS[1]),
        AddedToken(last + 2, "<far>"),
        AddedToken(last + 3, "<DOC>", lstrip=True, special=False),
        AddedToken(inside, "the"),
    )
    template = Template((Piece(last), Piece("A"), Piece(last + 1)), (Piece("A"), Piece("B")))
    return Tokenizer(base.pre_tokenizer, model, added, SPECIALS[0], SPECIALS[0], template)


TOKENIZERS = [tokenizer(False), tokenizer(True)]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.lists(st.sampled_from(PARTS), max_size=12).map("".join),
    st.sets(st.sampled_from(NAMES)),
    st.booleans(),
    st.sampled_from([{}, {"dropout": Dropout(0.4, seed=3)}, {"split_policy": "llama3"}]),
    st.sampled_from(TOKENIZERS),
)
def test_what_text_says_never_becomes_a_control_token(text, allowed, around, options, tokenizer):
    options = {"allowed_special": allowed, "add_special_tokens": around, "bos": around, **options}
    found = tokenizer.encode_with_offsets(text, **options)
    assert found.ids == tokenizer.encode(text, **options)
    control = {token_id: name for name, token_id in tokenizer.special_ids.items()}
    raw = text.encode()
    for token_id, mask, sequence, (start, stop) in zip(
        found.ids, found.special_mask, found.sequence_ids, found.offsets, strict=True
    ):
        assert mask == (token_id in control)
        if sequence is None:
            assert around and mask
        elif mask:
            assert control[token_id] in allowed
            assert raw[start:stop] == control[token_id].encode()
    assert found.sequence_ids.count(None) == (2 if around else 0)
    inner = [token_id for token_id, sequence in zip(found.ids, found.sequence_ids, strict=True) if sequence is not None]
    if " <DOC>" not in text:
        assert tokenizer.decode_bytes(inner) == raw


def test_an_ordinary_added_token_has_no_mask():
    for one in TOKENIZERS:
        found = one.encode_with_offsets(" <DOC>")
        assert (found.ids, found.special_mask, found.offsets) == ([one.token_id("<DOC>")], [0], [(0, 6)])
