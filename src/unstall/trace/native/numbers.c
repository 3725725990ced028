/* Decimal text to exact integers: a double has no room for nanoseconds since 1970. */
#include "scan.h"

#define KEPT_DIGITS 40
#define MAX_EXPONENT 1000000

typedef struct {
    bool negative;
    char digits[KEPT_DIGITS]; /* significant ones, without leading zeros */
    int count;
    long exponent; /* value = digits * 10^exponent */
    bool more;     /* digits that are not zero were left out */
} Decimal;

static void add_digit(Decimal *d, char c, bool fraction) {
    if (d->count == KEPT_DIGITS) {
        d->more |= c != '0';
        d->exponent += !fraction;
        return;
    }
    d->exponent -= fraction;
    if (d->count || c != '0') d->digits[d->count++] = c;
}

static Decimal parse(Text number) {
    Decimal d = {0};
    const char *p = number.data, *end = p + number.size;
    if (p < end && *p == '-') d.negative = true, p++;
    for (bool fraction = false; p < end && *p != 'e' && *p != 'E'; p++) {
        if (*p == '.')
            fraction = true;
        else
            add_digit(&d, *p, fraction);
    }
    if (p == end) return d;
    p++;
    const bool down = *p == '-';
    if (*p == '-' || *p == '+') p++;
    long exponent = 0;
    for (; p < end; p++)
        if (exponent < MAX_EXPONENT) exponent = exponent * 10 + (*p - '0');
    d.exponent += down ? -exponent : exponent;
    return d;
}

/* The first n of the digits as a number, zeros after the last; false if it is beyond 64 bits. */
static bool leading(const Decimal *d, long n, uint64_t *out) {
    uint64_t value = 0;
    for (long i = 0; i < n; i++) {
        const uint64_t next = i < d->count ? (uint64_t)(d->digits[i] - '0') : 0;
        if (value > (UINT64_MAX - next) / 10) return false;
        value = value * 10 + next;
    }
    *out = value;
    return true;
}

static bool whole_after(const Decimal *d, long n) {
    if (d->more) return false;
    for (long i = n < 0 ? 0 : n; i < d->count; i++)
        if (d->digits[i] != '0') return false;
    return true;
}

static bool from_decimal(const Decimal *d, int scale, bool round, uint64_t *magnitude, bool *beyond) {
    if (!d->count) return *magnitude = 0, true;
    const long n = d->count + d->exponent + scale; /* digits before the point */
    if (!round && !whole_after(d, n)) return false;
    if (n > 20 || !leading(d, n < 0 ? 0 : n, magnitude)) return *beyond = true, false;
    if (round && n >= 0 && n < d->count && d->digits[n] >= '5') ++*magnitude;
    return true;
}

bool scaled_integer(Text number, int scale, bool round, uint64_t limit, int64_t *out, bool *beyond) {
    static const uint64_t powers[] = {1, 10, 100, 1000};
    uint64_t magnitude = 0;
    const char *p = number.data, *end = p + number.size;
    const bool negative = p < end && *p == '-';
    p += negative;
    *beyond = false;
    /* The common case: up to 15 digits and at most `scale` after a point. */
    const char *integer = p;
    while (p < end && (unsigned char)(*p - '0') < 10) magnitude = magnitude * 10 + (uint64_t)(*p++ - '0');
    int left = scale;
    const bool plain = p - integer <= 15;
    if (plain && p < end && *p == '.')
        for (p++; p < end && left && (unsigned char)(*p - '0') < 10; p++, left--)
            magnitude = magnitude * 10 + (uint64_t)(*p - '0');
    if (plain && p == end) {
        magnitude *= powers[left];
    } else {
        const Decimal d = parse(number);
        if (!from_decimal(&d, scale, round, &magnitude, beyond)) return false;
    }
    if (magnitude > limit) return *beyond = true, false;
    *out = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return true;
}
