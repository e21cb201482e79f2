import pytest

from tokctl.errors import UsageError
from tokctl.tokenizer.byte_order import BYTE_ORDERS, BYTE_TO_CHAR, byte_alphabet, spell_bytes, unspell_bytes


def test_each_order_holds_every_byte_once():
    for order in BYTE_ORDERS.values():
        assert sorted(order) == [bytes([byte]) for byte in range(256)]


def test_gpt2_order_begins_and_ends_as_the_published_vocabulary():
    order = byte_alphabet("gpt2")
    # GPT-2: "!" is 0, "~" 93, "¡" 94, "ÿ" 187, then the stand-ins: NUL 188, newline 198, space 220, soft hyphen last.
    assert order[0] == b"!"
    assert order[93] == b"~"
    assert order[94] == b"\xa1"
    assert order[187] == b"\xff"
    assert order[188] == b"\x00"
    assert order[198] == b"\n"
    assert order[220] == b" "
    assert order[255] == b"\xad"


def test_raw_order_is_the_byte_value():
    assert byte_alphabet("raw") == tuple(bytes([byte]) for byte in range(256))


def test_spelling_is_a_bijection():
    everything = bytes(range(256))
    assert unspell_bytes(spell_bytes(everything)) == everything
    assert len(set(BYTE_TO_CHAR)) == 256
    assert spell_bytes(b" a\n") == "ĠaĊ"


def test_a_character_outside_the_spelling_is_refused():
    with pytest.raises(KeyError):
        unspell_bytes("a b")


def test_unknown_order_names_the_choices():
    with pytest.raises(UsageError, match="EBCDIC") as caught:
        byte_alphabet("EBCDIC")
    assert "gpt2, raw" in caught.value.hint


def test_equals_tokenizers_alphabet():
    pre_tokenizers = pytest.importorskip("tokenizers").pre_tokenizers
    assert sorted(pre_tokenizers.ByteLevel.alphabet()) == [spell_bytes(token) for token in byte_alphabet("gpt2")]
