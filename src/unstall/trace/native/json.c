/* JSON as Python's json module reads it with strict=False: NaN and Infinity, and control characters in strings. */
#include "scan.h"

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define MAX_DEPTH 512

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

static inline int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* *p is behind the backslash. */
static Status check_escape(const char **p, const char *end) {
    if (*p >= end) return MORE;
    const char c = *(*p)++;
    if (c != 'u') return c && strchr("\"\\/bfnrt", c) ? OK : BAD;
    for (int i = 0; i < 4; i++, (*p)++) {
        if (*p >= end) return MORE;
        if (hex(**p) < 0) return BAD;
    }
    return OK;
}

Status json_string(const char **p, const char *end, Value *value) {
    const char *start = *p + 1, *at = start;
    value->kind = STRING;
    value->escaped = false;
    for (;;) {
        at = find_special(at, end);
        if (at >= end) return MORE;
        if (*at == '"') break;
        at++;
        value->escaped = true;
        const Status status = check_escape(&at, end);
        if (status != OK) return status;
    }
    value->text = (Text){start, (size_t)(at - start)};
    *p = at + 1;
    return OK;
}

static inline bool digit(char c) { return (unsigned char)(c - '0') < 10; }

/* At least one digit. */
static inline Status digits(const char **p, const char *end) {
    if (*p >= end) return MORE;
    if (!digit(**p)) return BAD;
    while (digit(**p)) (*p)++;
    return OK;
}

static Status literal(const char **p, const char *end, const char *word, Value *value) {
    const char *start = *p;
    for (; *word; word++, (*p)++) {
        if (*p >= end) return MORE;
        if (**p != *word) return BAD;
    }
    value->kind = LITERAL;
    value->text = (Text){start, (size_t)(*p - start)};
    return OK;
}

Status json_number(const char **p, const char *end, Value *value) {
    const char *start = *p;
    Status status = OK;
    if (**p == '-' && ++*p < end && **p == 'I') return *p = start, literal(p, end, "-Infinity", value);
    if (*p >= end) return MORE;
    if (**p == '0')
        ++*p;
    else if ((status = digits(p, end)) != OK)
        return status;
    if (**p == '.') {
        ++*p;
        if ((status = digits(p, end)) != OK) return status;
    }
    if (**p == 'e' || **p == 'E') {
        ++*p;
        if (**p == '+' || **p == '-') ++*p;
        if ((status = digits(p, end)) != OK) return status;
    }
    if (*p >= end) return MORE; /* it might go on */
    value->kind = NUMBER;
    value->text = (Text){start, (size_t)(*p - start)};
    return OK;
}

static Status scalar(const char **p, const char *end, Value *value) {
    switch (**p) {
        case '"': return json_string(p, end, value);
        case 'n': return literal(p, end, "null", value);
        case 't': return literal(p, end, "true", value);
        case 'f': return literal(p, end, "false", value);
        case 'N': return literal(p, end, "NaN", value);
        case 'I': return literal(p, end, "Infinity", value);
        default: return json_number(p, end, value);
    }
}

/* An array or object. The stack of what is open is one bit a level: set for an object. */
static Status container(const char **p, const char *end) {
    uint64_t open[MAX_DEPTH / 64];
    int depth = 0;
    Value ignored;
    Status status = OK;
    const char *at = *p;
    for (;;) {
        /* a value begins here */
        at = skip_space(at);
        if (at >= end) return MORE;
        bool value_done = true;
        if (*at == '{' || *at == '[') {
            const bool object = *at == '{';
            if (depth == MAX_DEPTH) return BAD;
            const uint64_t bit = UINT64_C(1) << (depth % 64);
            if (object)
                open[depth / 64] |= bit;
            else
                open[depth / 64] &= ~bit;
            depth++;
            at = skip_space(at + 1);
            if (at >= end) return MORE;
            if (*at == (object ? '}' : ']')) {
                depth--;
                at++;
            } else {
                value_done = false;
            }
        } else if ((status = scalar(&at, end, &ignored)) != OK) {
            return status;
        }
        /* what follows a value: closing brackets, then a comma */
        while (value_done) {
            if (!depth) {
                *p = at;
                return OK;
            }
            const bool object = open[(depth - 1) / 64] >> ((depth - 1) % 64) & 1;
            at = skip_space(at);
            if (at >= end) return MORE;
            if (*at == ',') {
                at = skip_space(at + 1);
                value_done = false;
            } else if (*at == (object ? '}' : ']')) {
                at++;
                depth--;
            } else {
                return BAD;
            }
        }
        if (open[(depth - 1) / 64] >> ((depth - 1) % 64) & 1) {
            if (at >= end) return MORE;
            if (*at != '"') return BAD;
            if ((status = json_string(&at, end, &ignored)) != OK) return status;
            at = skip_space(at);
            if (at >= end) return MORE;
            if (*at++ != ':') return BAD;
        }
    }
}

Status json_value(const char **p, const char *end, Value *value) {
    if (*p >= end) return MORE;
    if (**p != '{' && **p != '[') return scalar(p, end, value);
    const char *start = *p;
    const Status status = container(p, end);
    if (status != OK) return status;
    value->kind = CONTAINER;
    value->text = (Text){start, (size_t)(*p - start)};
    return OK;
}

static size_t utf8(uint32_t code, char *out) {
    if (code < 0x80) return out[0] = (char)code, 1;
    if (code < 0x800) return out[0] = (char)(0xc0 | code >> 6), out[1] = (char)(0x80 | (code & 63)), 2;
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 63));
        out[2] = (char)(0x80 | (code & 63));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 63));
    out[2] = (char)(0x80 | (code >> 6 & 63));
    out[3] = (char)(0x80 | (code & 63));
    return 4;
}

static uint32_t hex4(const char *p) {
    return (uint32_t)(hex(p[0]) << 12 | hex(p[1]) << 8 | hex(p[2]) << 4 | hex(p[3]));
}

/* p is behind "\u" of a checked string; moves it behind the escape, or both of a surrogate pair. */
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

size_t json_unescape(Text text, char *out) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char *const start = out;
    for (const char *p = text.data, *end = p + text.size; p < end;) {
        if (*p != '\\') {
            *out++ = *p++;
            continue;
        }
        p += 2;
        if (p[-1] == 'u')
            out += utf8(code_point(&p, end), out);
        else
            *out++ = to[strchr(from, p[-1]) - from];
    }
    return (size_t)(out - start);
}
