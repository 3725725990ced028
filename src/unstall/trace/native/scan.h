/* unstall.trace._scan: trace events from JSON straight into columns, and two passes over graphs.
 *
 * json.c     JSON tokens, and decimal numbers as exact integers
 * strings.c  interned strings
 * events.c   an event's fields, and the row that they make
 * scanner.c  the scanner as Python calls it
 * graph.c    which event is inside which; the longest path through a replay
 *
 * No Python.h: unstall/trace/library.py calls what is EXPORTed by ctypes, without the GIL. Which keys, columns
 * and tables there are is told by readers/rows.py; readers/events.py fills the same ones in Python, and is kept equal
 * by tests.
 */
#ifndef UNSTALL_SCAN_H
#define UNSTALL_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

/* The buffer ends with this many zeros, so that readers may look past its end: a zero is valid nowhere in JSON. */
#define PADDING 32
#define SHORT 16 /* to copy this many bytes is faster than to count them */

typedef struct {
    const char *data;
    size_t size;
} Text;

/* ---- json.c */

typedef enum { STRING, NUMBER, LITERAL, CONTAINER } ValueKind;

typedef struct {
    const char *data; /* of a string what is between the quotes, as it is written; NULL: there is no value */
    uint32_t size;
    ValueKind kind;
} Value;

static inline const char *skip_space(const char *p) {
    while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') p++;
    return p;
}

/* These read what begins at *p and move *p behind it. Where that is no JSON they return false, and *p is at what is
 * wrong: at `end` or behind it, if more data may put it right. */
bool json_string(const char **p, const char *end, Value *value);
bool json_scalar(const char **p, const char *end, Value *value);
bool json_note(Value *value, ValueKind kind, const char *from, const char *to); /* false: more than 4 GB */

bool json_is_number(Text text); /* with something behind it that is no part of one */

/* A number times 10^scale: rounded, halves away from zero, if there is a scale, else only if it is whole. */
typedef enum { NO_INTEGER, BEYOND_LIMIT, INTEGER_READ } Reading;
Reading json_integer(Text number, int scale, uint64_t limit, int64_t *out);

/* ---- strings.c */

typedef struct {
    uint64_t hash;
    size_t offset;
    size_t size;
} StringEntry;

typedef struct {
    char *bytes;
    size_t used, room;
    StringEntry *entries;
    size_t count, entry_room;
    int32_t *slots; /* index into entries, -1 if free */
    size_t slot_count;
    int32_t last; /* the one that was asked for last */
} Strings;

int32_t strings_intern(Strings *strings, Text text); /* -1: no memory */
void strings_free(Strings *strings);
bool grow(void **data, size_t *room, size_t needed, size_t width);

/* ---- events.c */

enum { MAX_FIELDS = 32, MAX_COLUMNS = 48, MAX_TABLES = 8, MAX_TEXTS = 8, MAX_LIST = 6, MAX_KEY = 40 };

/* The fields that the scanner itself knows; the others are of columns only. */
enum { F_ARGS, F_PHASE, F_CATEGORY, F_NAME, F_DEVICE, F_STREAM };

/* Of the interned strings, these are [phase, category], each of which has a route. */
enum { T_ROUTES };

typedef struct {
    char name[MAX_KEY];
    uint8_t field;
    uint8_t next; /* the next key of its size, and so on; 0: none */
} Key;

typedef struct {
    Key keys[MAX_FIELDS]; /* from 1 on */
    size_t count;
    uint8_t of_size[MAX_KEY];
} Keys;

enum { C_MALFORMED, C_NO_OBJECT, C_BEYOND /* integers of more than 64 bits */, COUNTS };

/* How a column is filled: readers/rows.py says what each means. */
enum { KIND, INTEGER, POSITIVE, TEXT, LIST, OPTIONAL_LIST, INPUTS };

typedef struct {
    uint8_t table, how, width, scale, texts, field_count, fields[MAX_LIST];
    int64_t absent; /* the value of an integer that is not there */
    void *data;
} Column;

typedef struct {
    size_t first, end; /* columns */
    size_t count, room; /* rows */
} Table;

/* Where events of a phase and category go: a table, or -1. */
typedef struct {
    int8_t table, with_stream; /* the second if the event has a device and a stream */
    uint8_t kind;
    uint64_t events;
} Route;

typedef struct {
    Keys keys[2]; /* of an event, and of its args */
    Column columns[MAX_COLUMNS];
    Table tables[MAX_TABLES];
    Strings strings[MAX_TEXTS];
    Route *routes;
    size_t column_count, route_count, route_room, last_field;
    uint64_t counts[COUNTS];
    char *scratch;
    size_t scratch_room;
    bool no_memory;
    bool resyncing; /* looking for the next event after one that is no JSON */
} Events;

typedef enum {
    OK,
    MORE,      /* valid so far, but the buffer ends */
    NEW_ROUTE, /* its phase and category are the newest of T_ROUTES, and Python must say where they go */
    NO_MEMORY,
    BAD,       /* no JSON */
} Status;

/* Read what is at *p and move *p behind it. Nothing is added, and *p stays, unless it is OK. */
Status events_add(Events *events, const char **p, const char *end);  /* an object: adds its row */
Status events_skip(Events *events, const char **p, const char *end); /* a value that is no object */
void events_free(Events *events);

#endif
