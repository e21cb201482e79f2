/* Base64 (RFC 4648) with a table in each direction; no allocation, no state. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static const char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t base64_encoded_size(size_t n)
{
    return (n + 2) / 3 * 4;
}

/* Writes base64_encoded_size(n) characters; out needs no room for a terminating zero. */
void base64_encode(const uint8_t *data, size_t n, char *out)
{
    while (n >= 3) {
        uint32_t word = (uint32_t)data[0] << 16 | (uint32_t)data[1] << 8 | data[2];
        for (int shift = 18; shift >= 0; shift -= 6)
            *out++ = ALPHABET[word >> shift & 63];
        data += 3;
        n -= 3;
    }
    if (n == 0)
        return;
    uint32_t word = (uint32_t)data[0] << 16 | (n == 2 ? (uint32_t)data[1] << 8 : 0);
    *out++ = ALPHABET[word >> 18 & 63];
    *out++ = ALPHABET[word >> 12 & 63];
    *out++ = n == 2 ? ALPHABET[word >> 6 & 63] : '=';
    *out = '=';
}

/* The number of bytes decoded, or -1 for text that is not base64. out has room for n / 4 * 3 bytes. */
ptrdiff_t base64_decode(const char *text, size_t n, uint8_t *out)
{
    uint8_t value[256];
    uint8_t *start = out;

    if (n % 4 != 0)
        return -1;
    memset(value, 255, sizeof value);
    for (int i = 0; i < 64; i++)
        value[(uint8_t)ALPHABET[i]] = (uint8_t)i;
    for (size_t at = 0; at < n; at += 4) {
        int is_last = at + 4 == n;
        int padding = is_last && text[at + 3] == '=' ? (text[at + 2] == '=' ? 2 : 1) : 0;
        uint32_t word = 0;
        for (int i = 0; i < 4; i++) {
            uint8_t digit = i >= 4 - padding ? 0 : value[(uint8_t)text[at + i]];
            if (digit == 255)
                return -1;
            word = word << 6 | digit;
        }
        *out++ = (uint8_t)(word >> 16);
        if (padding < 2)
            *out++ = (uint8_t)(word >> 8);
        if (padding < 1)
            *out++ = (uint8_t)word;
    }
    return out - start;
}
