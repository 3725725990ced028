/* A trace event (Chrome's JSON format, Kineto's dialect) to its fields. */
#include <stdlib.h>
#include <string.h>

#include "fields.h"

/* Column order is that of readers/rows.py. */
static const uint8_t widths[TABLES][MAX_COLUMNS] = {
    [T_HOST] = {8, 8, 4, 4, 1, 8, 8, 8, 4, 4, 4},
    [T_DEVICE] = {8, 8, 4, 4, 8, 1, 8, 8, 8, 1, 4},
    [T_WAIT] = {8, 8, 4, 4, 8, 8, 8, 8},
    [T_END] = {8, 4, 8},
    [T_LABEL] = {4, 4, 4},
};
static const int column_counts[TABLES] = {11, 11, 8, 3, 3};

typedef struct {
    const char *name;
    uint8_t size;
    uint8_t field;
} Key;

#define KEY(name, field) {name, sizeof name - 1, field}
static const Key event_keys[] = {
    KEY("ph", F_PHASE),   KEY("cat", F_CATEGORY), KEY("name", F_NAME),  KEY("pid", F_PROCESS),
    KEY("tid", F_THREAD), KEY("ts", F_TIME),      KEY("dur", F_DURATION), KEY("args", F_ARGS),
};
static const Key arg_keys[] = {
    KEY("External id", F_EXTERNAL), KEY("external id", F_EXTERNAL), KEY("correlation", F_CORRELATION),
    KEY("Sequence number", F_SEQUENCE), KEY("device", F_DEVICE), KEY("stream", F_STREAM), KEY("bytes", F_BYTES),
    KEY("graph node id", F_GRAPH), KEY("Input Dims", F_DIMS), KEY("Input type", F_TYPES),
    KEY("Concrete Inputs", F_CONCRETE), KEY("Call stack", F_STACK), KEY("Collective name", F_COLLECTIVE),
    KEY("Process Group Name", F_GROUP), KEY("Group size", F_GROUP_SIZE), KEY("dtype", F_DTYPE),
    KEY("In msg nelems", F_IN), KEY("Out msg nelems", F_OUT), KEY("wait_on_stream", F_ON_STREAM),
    KEY("wait_on_cuda_event_record_corr_id", F_ON_CORRELATION), KEY("name", F_LABEL), KEY("labels", F_LABEL),
};

void events_init(Events *events, const Category *categories, size_t count) {
    memset(events, 0, sizeof *events);
    events->categories = categories;
    events->category_count = count;
    for (int i = 0; i < TABLES; i++) {
        events->tables[i].columns = column_counts[i];
        events->tables[i].width = widths[i];
    }
}

void events_free(Events *events) {
    for (int i = 0; i < TABLES; i++) table_free(&events->tables[i]);
    for (int i = 0; i < STRINGS; i++) strings_free(&events->strings[i]);
    free(events->codes);
    free(events->scratch[0]);
    free(events->scratch[1]);
}

static Field find(const Key *keys, size_t count, Text name) {
    for (size_t i = 0; i < count; i++)
        if (keys[i].size == name.size && !memcmp(keys[i].name, name.data, name.size)) return keys[i].field;
    return F_NONE;
}

/* A key and its colon; p ends at the value. */
static Status read_key(Events *events, const char **p, const char *end, Text *name) {
    Value key;
    if (*p >= end) return MORE;
    if (**p != '"') return BAD;
    const Status status = json_string(p, end, &key);
    if (status != OK) return status;
    *name = text_of(events, &key);
    *p = skip_space(*p);
    if (*p >= end) return MORE;
    if (**p != ':') return BAD;
    *p = skip_space(*p + 1);
    return *p < end ? OK : MORE;
}

static Status read_object(Events *events, const char **p, const char *end, bool args, Value *fields) {
    Text name;
    Status status;
    *p = skip_space(*p + 1);
    if (*p < end && **p == '}') return ++*p, OK;
    for (;;) {
        if ((status = read_key(events, p, end, &name)) != OK) return status;
        const Field field = args ? find(arg_keys, sizeof arg_keys / sizeof *arg_keys, name)
                                 : find(event_keys, sizeof event_keys / sizeof *event_keys, name);
        if (field == F_ARGS) /* of two the last counts, as in Python */
            memset(fields + F_CORRELATION, 0, (FIELDS - F_CORRELATION) * sizeof *fields);
        if (field == F_ARGS && **p == '{')
            status = read_object(events, p, end, true, fields);
        else
            status = json_value(p, end, &fields[field]);
        if (status != OK) return status;
        *p = skip_space(*p);
        if (*p >= end) return MORE;
        if (**p == '}') return ++*p, OK;
        if (**p != ',') return BAD;
        *p = skip_space(*p + 1);
    }
}

Status events_add(Events *events, const char **p, const char *end) {
    Value fields[FIELDS];
    memset(fields, 0, sizeof fields);
    const Status status = read_object(events, p, end, false, fields);
    if (status != OK) return status;
    events->counts[N_EVENTS]++;
    add_event(events, fields);
    return OK;
}
