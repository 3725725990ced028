/* What Python calls, by ctypes: a scanner over a buffer that Python fills. One thread at a time may use a scanner. */
#include "scan.h"

#include <stdlib.h>
#include <string.h>

EXPORT Events *scanner_new(void) { return calloc(1, sizeof(Events)); }

EXPORT void scanner_free(Events *events) { events_free(events); }

/* ---- what to read */

EXPORT bool scanner_add_key(Events *events, bool in_args, const char *name, size_t size, uint8_t field) {
    Keys *keys = &events->keys[in_args];
    if (!size || size >= MAX_KEY || keys->count + 1 == MAX_FIELDS || field >= MAX_FIELDS || (in_args && field == F_ARGS))
        return false;
    Key *key = &keys->keys[++keys->count];
    memcpy(key->name, name, size);
    key->field = field;
    if (field > events->last_field) events->last_field = field;
    key->next = keys->of_size[size];
    keys->of_size[size] = (uint8_t)keys->count;
    return true;
}

/* The columns of a table follow each other. */
EXPORT bool scanner_add_column(Events *events, const Column *column) {
    if (events->column_count == MAX_COLUMNS || column->table >= MAX_TABLES || column->texts >= MAX_TEXTS ||
        column->field_count > MAX_LIST || column->data)
        return false;
    for (int i = 0; i < column->field_count; i++)
        if (column->fields[i] > events->last_field) return false;
    Table *table = &events->tables[column->table];
    if (!table->end) table->first = table->end = events->column_count;
    if (table->end != events->column_count) return false;
    events->columns[events->column_count++] = *column;
    table->end = events->column_count;
    return true;
}

/* Says where the events of the newest of T_ROUTES go. */
EXPORT bool scanner_add_route(Events *events, int8_t table, int8_t with_stream, uint8_t kind) {
    if (table >= MAX_TABLES || with_stream >= MAX_TABLES ||
        !grow((void **)&events->routes, &events->route_room, events->route_count + 1, sizeof *events->routes))
        return false;
    events->routes[events->route_count++] = (Route){.table = table, .with_stream = with_stream, .kind = kind};
    return true;
}

/* ---- reading */

/* Looks for "}, {". True and *p at the second brace, or false and *p where to look again with more data. */
static bool resync(const char **p, const char *end) {
    while (*p < end && (*p = memchr(*p, '}', (size_t)(end - *p)))) {
        const char *next = skip_space(*p + 1);
        if (*next == ',') next = skip_space(next + 1);
        else if (next < end) next = "";
        if (*next == '{') return *p = next, true;
        if (next == end) return false;
        ++*p;
    }
    return *p = end, false;
}

static Status scan(Events *events, const char **p, const char *end) {
    for (;;) {
        if (events->resyncing) {
            if (!resync(p, end)) return MORE;
            events->resyncing = false;
        }
        while (**p == ',' || **p == ' ' || **p == '\n' || **p == '\r' || **p == '\t') ++*p;
        if (*p >= end) return MORE;
        if (**p == ']') return ++*p, OK;
        const bool object = **p == '{';
        const Status status = object ? events_add(events, p, end) : events_skip(events, p, end);
        if (status == OK) {
            events->counts[C_NO_OBJECT] += !object;
        } else if (status == BAD) {
            events->counts[C_MALFORMED]++;
            events->resyncing = true;
            ++*p;
        } else {
            return status;
        }
    }
}

/* Reads all it can of the elements of an array; *done: how much that was. OK at the array's end, else what is missing.
 * Behind the data are PADDING zeros. */
EXPORT Status scanner_scan(Events *events, const char *data, size_t size, size_t *done) {
    const char *p = data;
    const Status status = scan(events, &p, data + size);
    *done = (size_t)(p - data);
    return status;
}

/* ---- what was read */

EXPORT const void *scanner_column(const Events *events, size_t column, size_t *rows) {
    *rows = events->tables[events->columns[column].table].count;
    return events->columns[column].data;
}

EXPORT void scanner_drop_column(Events *events, size_t column) {
    free(events->columns[column].data);
    events->columns[column].data = NULL;
}

EXPORT size_t scanner_strings(const Events *events, int which, const char **bytes, const StringEntry **entries) {
    *bytes = events->strings[which].bytes;
    *entries = events->strings[which].entries;
    return events->strings[which].count;
}

EXPORT uint64_t scanner_count(const Events *events, int which) { return events->counts[which]; }

EXPORT uint64_t scanner_events(const Events *events, size_t route) { return events->routes[route].events; }
