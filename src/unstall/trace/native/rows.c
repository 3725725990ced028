/* What the fields of an event mean, and the row that they make. */
#include <stdlib.h>
#include <string.h>

#include "fields.h"

#define MAX_TIME (UINT64_C(1) << 61)

static char *scratch(Events *events, int which, size_t size) {
    if (size > events->scratch_room[which]) {
        char *bigger = realloc(events->scratch[which], size);
        if (!bigger) return events->no_memory = true, NULL;
        events->scratch[which] = bigger;
        events->scratch_room[which] = size;
    }
    return events->scratch[which];
}

static bool absent(const Value *value) { return !value->text.data; }

static int32_t intern(Events *events, int which, Text text) {
    const int32_t id = strings_intern(&events->strings[which], text.data, text.size);
    if (id < 0) events->no_memory = true;
    return id;
}

Text text_of(Events *events, const Value *value) {
    if (value->kind != STRING || absent(value)) return (Text){"", 0};
    if (!value->escaped) return value->text;
    char *out = scratch(events, 0, value->text.size + 1);
    return out ? (Text){out, json_unescape(value->text, out)} : (Text){"", 0};
}

static bool is_number(Text text) {
    char copy[64 + PADDING] = {0};
    Value number;
    if (!text.size || text.size > 63 || text.data[0] == '+') return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = ','; /* so that the number is seen to end */
    const char *p = copy;
    return json_number(&p, copy + text.size + 1, &number) == OK && number.kind == NUMBER && p == copy + text.size;
}

/* A number, written as one or as a string. */
static bool integer(Events *events, const Value *value, int scale, uint64_t limit, int64_t *out) {
    bool beyond = false;
    if (absent(value)) return false;
    Text text = value->text;
    if (value->kind == STRING) {
        text = text_of(events, value);
        if (!is_number(text)) return false;
    } else if (value->kind != NUMBER) {
        return false;
    }
    const bool read = scaled_integer(text, scale, scale > 0, limit, out, &beyond);
    events->counts[N_BEYOND] += beyond;
    return read;
}

static int64_t whole(Events *events, const Value *value) {
    int64_t result = -1;
    integer(events, value, 0, INT64_MAX, &result);
    return result;
}

/* Kineto writes times in microseconds, with three decimals since 2024. */
static bool nanoseconds(Events *events, const Value *value, int64_t *out) {
    return integer(events, value, 3, MAX_TIME, out);
}

/* ---- what the fields mean */

static uint8_t look_up(const Events *events, Text name) {
    char lower[32];
    if (name.size > sizeof lower) return UNKNOWN_ROW;
    for (size_t i = 0; i < name.size; i++)
        lower[i] = name.data[i] >= 'A' && name.data[i] <= 'Z' ? (char)(name.data[i] + 32) : name.data[i];
    for (size_t i = 0; i < events->category_count; i++)
        if (events->categories[i].name.size == name.size && !memcmp(events->categories[i].name.data, lower, name.size))
            return events->categories[i].code;
    return UNKNOWN_ROW;
}

static uint8_t category(Events *events, const Value *value) {
    const Text name = text_of(events, value);
    const size_t known = events->strings[S_CATEGORIES].count;
    const int32_t id = intern(events, S_CATEGORIES, name);
    if (id < 0) return UNKNOWN_ROW;
    if ((size_t)id == known) {
        if (known == events->code_room) {
            const size_t room = known * 2 + 16;
            uint8_t *codes = realloc(events->codes, room);
            if (!codes) return events->no_memory = true, UNKNOWN_ROW;
            events->codes = codes;
            events->code_room = room;
        }
        events->codes[id] = look_up(events, name);
    }
    return events->codes[id];
}

/* pid or tid: 'i' and a number, or 't' and a text's number in S_TEXTS; ' ' and 0 if there is neither. */
static void lane_part(Events *events, const Value *value, char *out) {
    int64_t number = 0;
    out[0] = ' ';
    if (integer(events, value, 0, INT64_MAX, &number)) {
        out[0] = 'i';
    } else if (value->kind == STRING && !absent(value)) {
        out[0] = 't';
        number = intern(events, S_TEXTS, text_of(events, value));
    }
    memcpy(out + 1, &number, sizeof number);
}

static int32_t lane(Events *events, const Value *fields) {
    char key[18];
    lane_part(events, &fields[F_PROCESS], key);
    lane_part(events, &fields[F_THREAD], key + 9);
    return intern(events, S_LANES, (Text){key, sizeof key});
}

/* Several values as one text, with unit separators between them; -1 if all are absent. */
static int32_t joined(Events *events, int which, const Value *fields, const Field *wanted, int count) {
    size_t size = 0;
    bool any = false;
    for (int i = 0; i < count; i++) {
        any |= !absent(&fields[wanted[i]]);
        size += fields[wanted[i]].text.size + 1;
    }
    if (!any) return -1;
    char *out = scratch(events, 1, size), *at = out;
    if (!out) return -1;
    for (int i = 0; i < count; i++) {
        const Value *value = &fields[wanted[i]];
        const Text text = value->kind == STRING ? text_of(events, value) : value->text;
        if (text.size) memcpy(at, text.data, text.size);
        at += text.size;
        if (i + 1 < count) *at++ = '\x1f';
    }
    return intern(events, which, (Text){out, (size_t)(at - out)});
}

static int32_t collective(Events *events, const Value *fields) {
    static const Field wanted[] = {F_COLLECTIVE, F_GROUP, F_GROUP_SIZE, F_DTYPE, F_IN, F_OUT};
    return absent(&fields[F_COLLECTIVE]) ? -1 : joined(events, S_COLLECTIVES, fields, wanted, 6);
}

static bool contains(Text text, const char *word) {
    const size_t size = strlen(word);
    for (size_t i = 0; i + size <= text.size; i++)
        if (!memcmp(text.data + i, word, size)) return true;
    return false;
}

static int32_t inputs(Events *events, const Value *fields) {
    static const Field wanted[] = {F_DIMS, F_TYPES, F_CONCRETE};
    if (absent(&fields[F_DIMS])) return -1;
    return joined(events, S_INPUTS, fields, wanted, contains(text_of(events, &fields[F_NAME]), "conv") ? 3 : 2);
}

/* ---- rows */

#define SET(table, type, column, value) (((type *)(table)->data[column])[(table)->count] = (type)(value))

static Table *row(Events *events, int which) {
    Table *table = &events->tables[which];
    if (table_reserve(table)) return table;
    events->no_memory = true;
    return NULL;
}

static void add_host(Events *events, const Value *fields, int64_t time, int64_t duration, uint8_t kind) {
    Table *t = row(events, T_HOST);
    if (!t) return;
    SET(t, int64_t, 0, time);
    SET(t, int64_t, 1, duration);
    SET(t, int32_t, 2, intern(events, S_NAMES, text_of(events, &fields[F_NAME])));
    SET(t, int32_t, 3, lane(events, fields));
    SET(t, uint8_t, 4, kind);
    SET(t, int64_t, 5, whole(events, &fields[F_CORRELATION]));
    SET(t, int64_t, 6, whole(events, &fields[F_EXTERNAL]));
    SET(t, int64_t, 7, whole(events, &fields[F_SEQUENCE]));
    SET(t, int32_t, 8, inputs(events, fields));
    SET(t, int32_t, 9, fields[F_STACK].kind == STRING && fields[F_STACK].text.size
                           ? intern(events, S_STACKS, text_of(events, &fields[F_STACK])) : -1);
    SET(t, int32_t, 10, collective(events, fields));
    t->count++;
}

static int32_t device_of(Events *events, const Value *fields) {
    int64_t device = -1;
    if (!integer(events, &fields[F_DEVICE], 0, INT32_MAX, &device)) integer(events, &fields[F_PROCESS], 0, INT32_MAX, &device);
    return (int32_t)device;
}

/* Old traces have "stream 7" for a thread id. */
static int64_t stream_of(Events *events, const Value *fields) {
    int64_t stream = -1;
    if (integer(events, &fields[F_STREAM], 0, INT64_MAX, &stream)) return stream;
    if (integer(events, &fields[F_THREAD], 0, INT64_MAX, &stream)) return stream;
    const Text text = text_of(events, &fields[F_THREAD]);
    size_t digits = 0;
    while (digits < text.size && digits < 18 && (unsigned char)(text.data[text.size - digits - 1] - '0') < 10) digits++;
    bool beyond;
    if (digits) scaled_integer((Text){text.data + text.size - digits, digits}, 0, false, INT64_MAX, &stream, &beyond);
    return stream;
}

static void add_device(Events *events, const Value *fields, int64_t time, int64_t duration, uint8_t kind) {
    Table *t = row(events, T_DEVICE);
    if (!t) return;
    SET(t, int64_t, 0, time);
    SET(t, int64_t, 1, duration);
    SET(t, int32_t, 2, intern(events, S_NAMES, text_of(events, &fields[F_NAME])));
    SET(t, int32_t, 3, device_of(events, fields));
    SET(t, int64_t, 4, stream_of(events, fields));
    SET(t, uint8_t, 5, kind);
    SET(t, int64_t, 6, whole(events, &fields[F_CORRELATION]));
    SET(t, int64_t, 7, whole(events, &fields[F_EXTERNAL]));
    SET(t, int64_t, 8, whole(events, &fields[F_BYTES]));
    SET(t, uint8_t, 9, whole(events, &fields[F_GRAPH]) > 0);
    SET(t, int32_t, 10, collective(events, fields));
    t->count++;
}

static void add_wait(Events *events, const Value *fields, int64_t time, int64_t duration) {
    Table *t = row(events, T_WAIT);
    if (!t) return;
    SET(t, int64_t, 0, time);
    SET(t, int64_t, 1, duration);
    SET(t, int32_t, 2, intern(events, S_NAMES, text_of(events, &fields[F_NAME])));
    SET(t, int32_t, 3, device_of(events, fields));
    SET(t, int64_t, 4, stream_of(events, fields));
    SET(t, int64_t, 5, whole(events, &fields[F_CORRELATION]));
    SET(t, int64_t, 6, whole(events, &fields[F_ON_STREAM]));
    SET(t, int64_t, 7, whole(events, &fields[F_ON_CORRELATION]));
    t->count++;
}

/* What thread_name and its kin say of a lane. */
static void add_label(Events *events, const Value *fields) {
    if (fields[F_LABEL].kind != STRING || absent(&fields[F_LABEL])) return;
    Table *t = row(events, T_LABEL);
    if (!t) return;
    SET(t, int32_t, 0, intern(events, S_TEXTS, text_of(events, &fields[F_NAME])));
    SET(t, int32_t, 1, lane(events, fields));
    SET(t, int32_t, 2, intern(events, S_TEXTS, text_of(events, &fields[F_LABEL])));
    t->count++;
}

static int64_t duration_of(Events *events, const Value *fields) {
    int64_t duration = 0;
    if (!nanoseconds(events, &fields[F_DURATION], &duration)) {
        events->counts[N_NO_DURATION]++;
        return 0;
    }
    if (duration >= 0) return duration;
    events->counts[N_NEGATIVE]++;
    return 0;
}

static void add_complete(Events *events, const Value *fields, int64_t time) {
    uint8_t code = category(events, &fields[F_CATEGORY]);
    if (code == SKIPPED_ROW) return;
    const int64_t duration = duration_of(events, fields);
    if (code == UNKNOWN_ROW)
        code = absent(&fields[F_DEVICE]) || absent(&fields[F_STREAM]) ? HOST_ROW : DEVICE_ROW;
    switch (code & 0xf0) {
        case HOST_ROW: add_host(events, fields, time, duration, code & 0x0f); break;
        case DEVICE_ROW: add_device(events, fields, time, duration, code & 0x0f); break;
        case WAIT_ROW: add_wait(events, fields, time, duration); break;
    }
}

/* A range that begins here and ends with an event of its own: duration -1 until the two are matched. */
static void add_begin(Events *events, const Value *fields, int64_t time) {
    const uint8_t code = category(events, &fields[F_CATEGORY]);
    if (code == SKIPPED_ROW) return;
    add_host(events, fields, time, -1, (code & 0xf0) == HOST_ROW ? code & 0x0f : 0);
}

static void add_end(Events *events, const Value *fields, int64_t time) {
    Table *t = row(events, T_END);
    if (!t) return;
    SET(t, int64_t, 0, time);
    SET(t, int32_t, 1, lane(events, fields));
    SET(t, int64_t, 2, events->tables[T_HOST].count); /* it ends a range that began in a row before this */
    t->count++;
}

void add_event(Events *events, const Value *fields) {
    int64_t time;
    const Text phase = text_of(events, &fields[F_PHASE]);
    const char kind = phase.size == 1 ? phase.data[0] : 0;
    if (kind == 'M') {
        add_label(events, fields);
    } else if (kind == 'X' || kind == 'B' || kind == 'E') {
        if (!nanoseconds(events, &fields[F_TIME], &time))
            events->counts[N_NO_TIME]++;
        else if (kind == 'X')
            add_complete(events, fields, time);
        else if (kind == 'B')
            add_begin(events, fields, time);
        else
            add_end(events, fields, time);
    } else if (!kind || !strchr("iIsftRcCbenNODPv(),=", kind)) {
        events->counts[N_PHASE]++;
    }
}
