/* The fields of an event that are read, between events.c, which finds them, and rows.c, which knows what they mean. */
#ifndef UNSTALL_FIELDS_H
#define UNSTALL_FIELDS_H

#include "scan.h"

/* Everything else is skipped. An absent one has text.data NULL. */
typedef enum {
    F_NONE,
    /* of the event */
    F_PHASE, F_CATEGORY, F_NAME, F_TIME, F_DURATION, F_PROCESS, F_THREAD, F_ARGS,
    /* of its args */
    F_CORRELATION, F_EXTERNAL, F_SEQUENCE, F_DEVICE, F_STREAM, F_BYTES, F_GRAPH, F_DIMS, F_TYPES, F_CONCRETE, F_STACK,
    F_COLLECTIVE, F_GROUP, F_GROUP_SIZE, F_DTYPE, F_IN, F_OUT, F_ON_STREAM, F_ON_CORRELATION, F_LABEL,
    FIELDS
} Field;

/* A string's characters; valid until the next call with escapes in it. */
Text text_of(Events *events, const Value *value);

/* Adds the row of an event, if it has one. */
void add_event(Events *events, const Value *fields);

#endif
