/* Check that files are valid UTF-8 and say where they are not.
 *
 *     cc -O2 -o utf8_check utf8_check.c
 *     ./utf8_check page.html notes.txt
 *
 * Exit status: 0 all valid, 1 something is not, 2 a file could not be read.
 */
#include <stdio.h>
#include <stdlib.h>

/* How many bytes the sequence at p has if it is well formed (RFC 3629), else 0. */
static size_t sequence_length(const unsigned char *p, size_t left)
{
    unsigned char lead = p[0];

    if (lead < 0x80)
        return 1;
    if (lead < 0xC2)
        return 0; /* a continuation byte, or an overlong form of ASCII */
    if (lead < 0xE0)
        return left >= 2 && (p[1] & 0xC0) == 0x80 ? 2 : 0;
    if (lead < 0xF0) {
        if (left < 3 || (p[1] & 0xC0) != 0x80 || (p[2] & 0xC0) != 0x80)
            return 0;
        if (lead == 0xE0 && p[1] < 0xA0)
            return 0; /* overlong */
        if (lead == 0xED && p[1] > 0x9F)
            return 0; /* a surrogate */
        return 3;
    }
    if (lead < 0xF5) {
        if (left < 4 || (p[1] & 0xC0) != 0x80 || (p[2] & 0xC0) != 0x80 || (p[3] & 0xC0) != 0x80)
            return 0;
        if (lead == 0xF0 && p[1] < 0x90)
            return 0; /* overlong */
        if (lead == 0xF4 && p[1] > 0x8F)
            return 0; /* beyond U+10FFFF */
        return 4;
    }
    return 0;
}

static unsigned char *read_all(FILE *file, size_t *size)
{
    size_t capacity = 1 << 16;
    unsigned char *data = malloc(capacity);

    *size = 0;
    while (data != NULL) {
        size_t got = fread(data + *size, 1, capacity - *size, file);
        if (got == 0)
            break;
        *size += got;
        if (*size == capacity) {
            unsigned char *larger = realloc(data, capacity *= 2);
            if (larger == NULL)
                free(data);
            data = larger;
        }
    }
    return data;
}

static int check(const char *name)
{
    size_t size, at = 0, line = 1;
    FILE *file = fopen(name, "rb");

    if (file == NULL) {
        perror(name);
        return 2;
    }
    unsigned char *data = read_all(file, &size);
    int failed = ferror(file);
    fclose(file);
    if (data == NULL || failed) {
        fprintf(stderr, "%s: can't be read\n", name);
        free(data);
        return 2;
    }
    while (at < size) {
        size_t length = sequence_length(data + at, size - at);
        if (length == 0) {
            printf("%s: line %zu, byte %zu: 0x%02X is not UTF-8\n", name, line, at, data[at]);
            free(data);
            return 1;
        }
        if (data[at] == '\n')
            line++;
        at += length;
    }
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    int worst = 0;

    if (argc < 2) {
        fprintf(stderr, "usage: %s FILE...\n", argv[0]);
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        int status = check(argv[i]);
        if (status > worst)
            worst = status;
    }
    return worst;
}
