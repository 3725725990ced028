/* JSON as Python's json module reads it with strict=False: NaN and Infinity, and control characters in strings. */
#include "scan.h"

#include <stdlib.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* ---- strings */

/* The first quote or backslash at or after p, or something at or past end. */
static inline const char *find_special(const char *p, const char *end) {
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\');
    for (; p < end; p += 16) { /* may look 15 bytes past the end: see PADDING */
        const __m128i bytes = _mm_loadu_si128((const __m128i *)p);
        const int found = _mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, slash)));
        if (found) return p + __builtin_ctz((unsigned)found);
    }
#else
    while (p < end && *p != '"' && *p != '\\') p++;
#endif
    return p;
}

static const char escapes[] = "\"\\/bfnrt", escaped[] = "\"\\/\b\f\n\r\t";

static int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* *p is at the backslash. */
static bool skip_escape(const char **p) {
    const char c = *++*p;
    if (c != 'u' && (!c || !strchr(escapes, c))) return false;
    ++*p;
    for (int i = 0; c == 'u' && i < 4; i++, ++*p)
        if (hex(**p) < 0) return false;
    return true;
}

bool json_note(Value *value, ValueKind kind, const char *from, const char *to) {
    *value = (Value){from, (uint32_t)(to - from), (uint8_t)kind, false};
    return (size_t)(to - from) <= UINT32_MAX;
}

bool json_string(const char **p, const char *end, Value *value) {
    const char *start = ++*p;
    bool backslash = false;
    for (;;) {
        *p = find_special(*p, end);
        if (*p >= end) return false;
        if (**p == '"') break;
        backslash = true;
        if (!skip_escape(p)) return false;
    }
    const bool fits = json_note(value, STRING, start, (*p)++);
    value->escaped = backslash;
    return fits;
}

static char *put_utf8(uint32_t code, char *out) {
    if (code < 0x80) return *out++ = (char)code, out;
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3; /* bytes after the first */
    static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    *out++ = (char)(lead[more] | code >> 6 * more);
    for (int i = more - 1; i >= 0; i--) *out++ = (char)(0x80 | (code >> 6 * i & 63));
    return out;
}

static uint32_t hex4(const char *p) {
    return (uint32_t)(hex(p[0]) << 12 | hex(p[1]) << 8 | hex(p[2]) << 4 | hex(p[3]));
}

/* p is behind "\u" of a valid string; moves it behind the escape, or both of a surrogate pair. */
static uint32_t code_point(const char **p, const char *end) {
    const uint32_t high = hex4(*p);
    *p += 4;
    if (high < 0xd800 || high > 0xdfff) return high;
    if (high < 0xdc00 && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u') {
        const uint32_t low = hex4(*p + 2);
        if (low >= 0xdc00 && low <= 0xdfff) {
            *p += 6;
            return 0x10000 + ((high - 0xd800) << 10 | (low - 0xdc00));
        }
    }
    return 0xfffd;
}

size_t json_unescape(const char *data, size_t size, char *out) {
    char *const start = out;
    for (const char *p = data, *end = p + size; p < end;) {
        if (*p != '\\') {
            *out++ = *p++;
            continue;
        }
        p += 2;
        if (p[-1] == 'u') out = put_utf8(code_point(&p, end), out);
        else *out++ = escaped[strchr(escapes, p[-1]) - escapes];
    }
    return (size_t)(out - start);
}

/* ---- numbers and words */

static inline bool is_digit(char c) { return (unsigned char)(c - '0') < 10; }

/* At least one digit. */
static inline bool skip_digits(const char **p) {
    const char *from = *p;
    while (is_digit(**p)) ++*p;
    return *p > from;
}

static bool skip_number(const char **p) {
    *p += **p == '-';
    if (**p == '0') ++*p;
    else if (!skip_digits(p)) return false;
    if (**p == '.' && (++*p, !skip_digits(p))) return false;
    if (**p != 'e' && **p != 'E') return true;
    ++*p;
    *p += **p == '+' || **p == '-';
    return skip_digits(p);
}

static bool skip_word(const char **p, const char *word) {
    for (; *word; word++, ++*p)
        if (**p != *word) return false;
    return true;
}

bool json_scalar(const char **p, const char *end, Value *value) {
    const char *start = *p;
    const char *word = NULL;
    switch (*start) {
        case '"': return json_string(p, end, value);
        case 'n': word = "null"; break;
        case 't': word = "true"; break;
        case 'f': word = "false"; break;
        case 'N': word = "NaN"; break;
        case 'I': word = "Infinity"; break;
        case '-': word = start[1] == 'I' ? "-Infinity" : NULL; break;
    }
    return (word ? skip_word(p, word) : skip_number(p)) && json_note(value, word ? LITERAL : NUMBER, start, *p);
}

bool json_is_number(Text text) {
    const char *p = text.data;
    return skip_number(&p) && p == text.data + text.size;
}

Reading json_integer(Text number, int scale, uint64_t limit, int64_t *out) {
    const char *p = number.data, *const end = p + number.size;
    const bool negative = *p == '-';
    uint64_t value = 0;
    int next = 0;      /* the first digit after those in value */
    bool rest = false; /* whether a later one is not 0 */
    bool fraction = false, full = false;
    long shift = scale; /* the number is value.next * 10^shift */
    for (p += negative; p < end && *p != 'e' && *p != 'E'; p++) {
        const int digit = *p - '0';
        if (*p == '.') {
            fraction = true;
        } else if (full) {
            rest |= digit != 0;
            shift += !fraction;
        } else if (value > UINT64_MAX / 10 - 1) { /* at least 19 digits */
            full = true;
            next = digit;
            shift += !fraction;
        } else {
            value = value * 10 + (uint64_t)digit;
            shift -= fraction;
        }
    }
    if (p < end) {
        const long exponent = strtol(p + 1, NULL, 10), most = 1 << 20;
        shift += exponent > most ? most : exponent < -most ? -most : exponent;
    }
    for (; shift > 0 && value; shift--) {
        if (value > limit / 10) return BEYOND_LIMIT;
        value *= 10;
    }
    for (; shift < 0 && (value || next); shift++) {
        rest |= next != 0;
        next = (int)(value % 10);
        value /= 10;
    }
    if (!scale && (next || rest)) return NO_INTEGER;
    value += scale && next >= 5;
    if (value > limit) return BEYOND_LIMIT;
    *out = negative ? -(int64_t)value : (int64_t)value;
    return INTEGER_READ;
}
