/* unstall.trace._scan: trace events from JSON straight into columns.
 *
 * json.c     JSON tokens over a buffer that may end anywhere
 * numbers.c  decimal numbers to exact integers
 * strings.c  interned strings, and tables of columns
 * events.c   a trace event to its fields
 * rows.c     the fields to a row
 * nesting.c  which event is inside which
 * paths.c    the longest path through a replay's graph
 * module.c   what Python sees
 *
 * unstall/trace/readers/events.py does the same in Python, and is kept equal by tests.
 */
#ifndef UNSTALL_SCAN_H
#define UNSTALL_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Readers may look this far past the end of the data: the buffer is padded with zeros. */
#define PADDING 32

typedef enum {
    OK,
    MORE, /* valid so far, but the buffer ends */
    BAD,  /* no JSON */
} Status;

typedef struct {
    const char *data;
    size_t size;
} Text;

/* ---- json.c */

typedef enum { STRING, NUMBER, LITERAL, CONTAINER } ValueKind;

typedef struct {
    ValueKind kind;
    Text text;    /* of a string: between the quotes */
    bool escaped; /* a string with backslashes in it */
} Value;

static inline const char *skip_space(const char *p) {
    while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') p++;
    return p; /* stops at the padding at the latest */
}

/* Each reads what begins at *p, moves *p behind it, and never reads past end + PADDING. */
Status json_string(const char **p, const char *end, Value *value);
Status json_number(const char **p, const char *end, Value *value);
Status json_value(const char **p, const char *end, Value *value);

/* Writes at most text.size * 3 / 2 bytes of UTF-8; returns how many. A lone surrogate becomes U+FFFD. */
size_t json_unescape(Text text, char *out);

/* ---- numbers.c */

/* number * 10^scale as an integer. With round, halves go away from zero; without, it must be whole.
 * False if it is not, or beyond limit; *beyond is set in the second case. */
bool scaled_integer(Text number, int scale, bool round, uint64_t limit, int64_t *out, bool *beyond);

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
} Strings;

int32_t strings_intern(Strings *strings, const char *data, size_t size); /* -1: no memory */
void strings_free(Strings *strings);

#define MAX_COLUMNS 11

typedef struct {
    int columns;
    const uint8_t *width; /* bytes of an item, per column */
    void *data[MAX_COLUMNS];
    size_t count, room;
} Table;

bool table_reserve(Table *table); /* room for one more row; false: no memory */
void table_free(Table *table);

/* ---- events.c */

/* What a category is: the table in the high half, the kind in the low half. readers/rows.py says the same. */
enum { HOST_ROW = 0x00, DEVICE_ROW = 0x10, WAIT_ROW = 0x20, SKIPPED_ROW = 0x30, UNKNOWN_ROW = 0xff };

enum { T_HOST, T_DEVICE, T_WAIT, T_END, T_LABEL, TABLES };
enum { S_NAMES, S_STACKS, S_INPUTS, S_COLLECTIVES, S_LANES, S_TEXTS, S_CATEGORIES, STRINGS };
enum { N_EVENTS, N_MALFORMED, N_NO_OBJECT, N_NO_TIME, N_NEGATIVE, N_NO_DURATION, N_BEYOND, N_PHASE, N_TRUNCATED, COUNTS };

typedef struct {
    Text name;
    uint8_t code;
} Category;

typedef struct {
    Table tables[TABLES];
    Strings strings[STRINGS];
    uint64_t counts[COUNTS];
    const Category *categories; /* as Python gave them, lower case */
    size_t category_count;
    uint8_t *codes; /* by id in S_CATEGORIES */
    size_t code_room;
    char *scratch[2]; /* unescaped strings, and what is put together to be interned */
    size_t scratch_room[2];
    bool no_memory;
} Events;

void events_init(Events *events, const Category *categories, size_t count);
void events_free(Events *events);

/* Reads the object at *p and adds its row. Nothing is added unless it is complete. */
Status events_add(Events *events, const char **p, const char *end);

/* ---- nesting.c */

/* parent[i]: the innermost event around i on its thread, or -1; false: no memory. threads: number of them. */
bool nest(size_t count, const int64_t *start, const int64_t *duration, const int32_t *thread, size_t threads,
          int64_t slack, int depth, int32_t *parent);

/* ---- paths.c */

/* time[i]: when node i of a graph comes at the earliest, binding[i]: the edge it waits for, or -1. In-edges of node i
 * are pointer[i] to pointer[i + 1]; lag is how long after its source each one ends. False if an edge goes backward. */
bool longest_paths(size_t nodes, size_t edges, const int64_t *pointer, const int64_t *src, const double *lag,
                   double *time, int64_t *binding);

#endif
