/* A trace event (Chrome's JSON format, Kineto's dialect) to its fields, and the fields to a row. */
#define _GNU_SOURCE /* memmem */
#include "scan.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 512
#define MAX_TIME (UINT64_C(1) << 61)

void events_free(Events *events) {
    for (int i = 0; i < MAX_TEXTS; i++) strings_free(&events->strings[i]);
    for (size_t i = 0; i < events->column_count; i++) free(events->columns[i].data);
    free(events->routes);
    free(events->scratch);
    free(events);
}

static char *scratch(Events *events, size_t size) {
    if (grow((void **)&events->scratch, &events->scratch_room, size, 1)) return events->scratch;
    events->no_memory = true;
    return NULL;
}

static int32_t intern(Events *events, int which, Text text) {
    const int32_t number = strings_intern(&events->strings[which], text);
    if (number < 0) events->no_memory = true;
    return number;
}

static Text text_of(const Value *value) { return (Text){value->data, value->size}; }

static bool is_string(const Value *value) { return value->data && value->kind == STRING; }

/* ---- an event to its fields */

static bool read_value(Events *events, const char **p, const char *end, int depth, Value *value);

static int find_key(const Keys *keys, Text name) {
    if (!name.size || name.size >= MAX_KEY) return -1;
    for (int i = keys->of_size[name.size]; i; i = keys->keys[i].next) {
        const Key *key = &keys->keys[i];
        if (key->name[0] == name.data[0] && !memcmp(key->name, name.data, name.size)) return key->field;
    }
    return -1;
}

/* A key and its colon: where the value that follows belongs, if anywhere. One with escapes is none that is known. */
static bool read_key(const char **p, const char *end, const Keys *keys, int *field) {
    Value key;
    if (**p != '"' || !json_string(p, end, &key)) return false;
    *field = keys ? find_key(keys, text_of(&key)) : -1;
    *p = skip_space(*p);
    if (**p != ':') return false;
    *p = skip_space(*p + 1);
    return true;
}

/* An array or object. Of an object with known keys the values are noted in fields. */
static bool read_container(Events *events, const char **p, const char *end, int depth, const Keys *keys,
                           Value *fields) {
    const bool object = **p == '{';
    const char close = object ? '}' : ']';
    *p = skip_space(*p + 1);
    if (**p == close) return ++*p, true;
    for (;;) {
        int field = -1;
        Value ignored;
        if (object && !read_key(p, end, keys, &field)) return false;
        if (field == F_ARGS && fields[F_ARGS].data) { /* of two the last counts, as in Python */
            for (size_t i = 1; i <= events->keys[1].count; i++) fields[events->keys[1].keys[i].field].data = NULL;
        }
        Value *value = field < 0 ? &ignored : &fields[field];
        if (field == F_ARGS && **p == '{') {
            value->data = *p;
            if (!read_container(events, p, end, depth + 1, &events->keys[1], fields)) return false;
        } else if (!read_value(events, p, end, depth, value)) {
            return false;
        }
        *p = skip_space(*p);
        if (**p == close) return ++*p, true;
        if (**p != ',') return false;
        *p = skip_space(*p + 1);
    }
}

static bool read_value(Events *events, const char **p, const char *end, int depth, Value *value) {
    if (**p != '{' && **p != '[') return json_scalar(p, end, value);
    const char *start = *p;
    return depth < MAX_DEPTH && read_container(events, p, end, depth + 1, NULL, NULL) &&
           json_note(value, CONTAINER, start, *p);
}

/* ---- fields to a row */

static int64_t integer(Events *events, const Column *column, const Value *value) {
    if (!value->data || value->kind > NUMBER) return column->absent;
    if (value->kind == STRING && !json_is_number(text_of(value))) return column->absent;
    int64_t result;
    const uint64_t limit = column->scale ? MAX_TIME : column->width == 4 ? INT32_MAX : INT64_MAX;
    const Reading reading = json_integer(text_of(value), column->scale, limit, &result);
    events->counts[C_BEYOND] += reading == BEYOND_LIMIT;
    return reading == INTEGER_READ ? result : column->absent;
}

/* Several values, as they are written, as a JSON array. */
static int32_t list(Events *events, int texts, const Value *fields, const uint8_t *wanted, int count) {
    size_t size = 2;
    for (int i = 0; i < count; i++) size += fields[wanted[i]].size + sizeof "null," + SHORT;
    char *out = scratch(events, size), *at = out;
    if (!out) return -1;
    for (int i = 0; i < count; i++) {
        const Value *value = &fields[wanted[i]];
        *at++ = i ? ',' : '[';
        if (!value->data) {
            memcpy(at, "null", 4);
            at += 4;
        } else {
            const size_t quote = value->kind == STRING, length = value->size + 2 * quote;
            if (length <= SHORT) memcpy(at, value->data - quote, SHORT);
            else memcpy(at, value->data - quote, length);
            at += length;
        }
    }
    *at++ = ']';
    return intern(events, texts, (Text){out, (size_t)(at - out)});
}

/* Scalar arguments matter to convolutions only (stride, padding); nearly every other operator's differ at each step. */
static bool is_convolution(const Value *name) { return is_string(name) && memmem(name->data, name->size, "conv", 4); }

static int64_t value_of(Events *events, const Column *column, const Value *fields, uint8_t kind) {
    const Value *first = &fields[column->fields[0]];
    int count = column->field_count;
    switch (column->how) {
        case KIND: return kind;
        case INTEGER: return integer(events, column, first);
        case POSITIVE: return integer(events, column, first) > 0;
        case TEXT: return is_string(first) && first->size ? intern(events, column->texts, text_of(first)) : -1;
        case OPTIONAL_LIST:
        case INPUTS:
            if (!first->data) return -1;
            if (column->how == INPUTS && !is_convolution(&fields[F_NAME])) count--;
    }
    return list(events, column->texts, fields, column->fields, count);
}

static bool reserve_row(Events *events, Table *table) {
    size_t room = table->room;
    for (size_t i = table->first; i < table->end; i++) {
        room = table->room;
        if (!grow(&events->columns[i].data, &room, table->count + 1, events->columns[i].width))
            return events->no_memory = true, false;
    }
    table->room = room;
    return true;
}

static void add_row(Events *events, Table *table, const Value *fields, uint8_t kind) {
    if (table->count == table->room && !reserve_row(events, table)) return;
    for (size_t i = table->first; i < table->end; i++) {
        const Column *column = &events->columns[i];
        const int64_t value = value_of(events, column, fields, kind);
        switch (column->width) {
            case 1: ((uint8_t *)column->data)[table->count] = (uint8_t)value; break;
            case 4: ((int32_t *)column->data)[table->count] = (int32_t)value; break;
            default: ((int64_t *)column->data)[table->count] = value;
        }
    }
    table->count++;
}

Status events_add(Events *events, const char **p, const char *end) {
    static const uint8_t phase_and_category[] = {F_PHASE, F_CATEGORY};
    Value fields[MAX_FIELDS];
    memset(fields, 0, (events->last_field + 1) * sizeof *fields);
    const char *at = *p;
    if (!read_container(events, &at, end, 1, &events->keys[0], fields)) return at >= end ? MORE : BAD;
    const int32_t number = list(events, T_ROUTES, fields, phase_and_category, 2);
    if (events->no_memory) return NO_MEMORY;
    if ((size_t)number == events->route_count) return NEW_ROUTE;
    Route *route = &events->routes[number];
    route->events++;
    const int table = fields[F_DEVICE].data && fields[F_STREAM].data ? route->with_stream : route->table;
    if (table >= 0) add_row(events, &events->tables[table], fields, route->kind);
    *p = at;
    return events->no_memory ? NO_MEMORY : OK;
}

Status events_skip(Events *events, const char **p, const char *end) {
    Value ignored;
    const char *at = *p;
    if (!read_value(events, &at, end, 0, &ignored)) return at >= end ? MORE : BAD;
    if (at >= end) return MORE; /* a number may go on */
    if (!*at || !strchr(",] \n\r\t", *at)) return BAD;
    *p = at;
    return OK;
}
