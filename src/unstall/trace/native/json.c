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

static inline bool is_digit(char c) { return (unsigned char)(c - '0') < 10; }

/* *p is at the backslash. */
static bool skip_escape(const char **p) {
    const char c = *++*p;
    if (c != 'u' && (!c || !strchr("\"\\/bfnrt", c))) return false;
    ++*p;
    for (int i = 0; c == 'u' && i < 4; i++, ++*p)
        if (!is_digit(**p) && !((**p | 0x20) >= 'a' && (**p | 0x20) <= 'f')) return false;
    return true;
}

bool json_note(Value *value, ValueKind kind, const char *from, const char *to) {
    *value = (Value){from, (uint32_t)(to - from), kind};
    return (size_t)(to - from) <= UINT32_MAX;
}

bool json_string(const char **p, const char *end, Value *value) {
    const char *start = ++*p;
    for (;;) {
        *p = find_special(*p, end);
        if (*p >= end) return false;
        if (**p == '"') return json_note(value, STRING, start, (*p)++);
        if (!skip_escape(p)) return false;
    }
}

/* ---- numbers and words */

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
