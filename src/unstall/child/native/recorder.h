/* The recorder: fixed-size span records in a memory-mapped file, one file a process.
 *
 * Everything here runs with the GIL held. Nothing here may raise into, or change, the user's program:
 * when the disk is full or a stack is too deep, recording stops or skips, and says so in the header.
 */
#ifndef UNSTALL_RECORDER_H
#define UNSTALL_RECORDER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#define FORMAT_VERSION 1
#define HEADER_BYTES 4096
#define TAIL_RECORDS 4096 /* 48 bytes each: 48 pages */
#define MAPPED_BYTES (HEADER_BYTES + TAIL_RECORDS * sizeof(Record))
#define MAX_DEPTH 64
#define MAX_NAMES 65535
#define TICK_KINDS 9
#define ROOT_GROUPS 6
#define FIRST_CALLS 64 /* the watcher hears of this many calls of each name, unasked */
#define REFETCHES 64 /* the newest looks at what it costs to fetch anew what a step has pushed out of the caches */
#define SERVING_CALLS 4 /* of models, from which on a thread is heard where the main one makes none */

enum { UNOPENED = -1, UNAVAILABLE = -2 };
enum { TICK_OPTIMIZER = 2, TICK_FORWARD = 4 }; /* of unstall.records.vocabulary.Tick */

/* Flags of a record. */
#define FLAG_ERROR 1     /* the call raised */
#define FLAG_CPU 2       /* cpu is known */
#define FLAG_DELAY 4     /* delay is known */
#define FLAG_MAIN 8      /* on the main thread */
#define FLAG_MODULE 16   /* a submodule call: arg is the module's address, self excludes its children */
#define FLAG_NETWORK 32  /* a call on an internet socket: arg is the bytes moved */
#define FLAG_NOGRAD 64   /* a root module call with gradients disabled */

typedef struct {
    uint64_t start;  /* CLOCK_MONOTONIC, ns */
    uint64_t dur;    /* ns */
    uint64_t self;   /* ns, what other spans inside it took left out */
    uint32_t cpu;    /* thread CPU time, units of 100 ns */
    uint32_t delay;  /* runnable but not running, units of 100 ns */
    uint64_t arg;    /* bytes moved, the address of the call's first argument, or what `after` gave */
    uint32_t thread; /* kernel thread id */
    uint16_t name;
    uint8_t depth;
    uint8_t flags;
} Record;

/* The file: a header page, the tail (the newest records, not yet appended), then all older records in order.
 * Header and tail are shared memory, so a killed program loses nothing. The parent reads it while the program runs, and writes `control`. */
typedef struct {
    char magic[8];
    uint32_t version;
    uint32_t record_bytes;
    uint64_t opened;  /* CLOCK_MONOTONIC, ns */
    uint32_t pid;
    uint32_t parent;
    volatile uint64_t count;
    volatile uint64_t dropped;
    volatile uint32_t control; /* not 0: a wish of the parent's, handed to the watcher at the next tick */
    uint32_t tail_records;
    volatile uint64_t ticks[TICK_KINDS];
    volatile uint64_t flushed; /* records after the tail; count - flushed of the tail's are valid */
    volatile uint32_t refetches;
    volatile uint32_t refetch_ns[REFETCHES]; /* of a line of memory, a step after it was last touched */
} Header;

/* One open span on a thread's stack. */
typedef struct {
    uint64_t start;
    uint64_t inside; /* ns spent in spans it encloses */
    uint64_t cpu;
    uint64_t delay;
    uint16_t name;
    uint8_t flags;
} Frame;

typedef struct {
    uint32_t generation; /* of the process: a forked child starts afresh */
    uint32_t thread;
    int is_main;
    int model_calls; /* of a thread that is not the main one; some first ones only */
    int depth;
    int schedstat; /* file descriptor; UNOPENED or UNAVAILABLE */
    int roots[ROOT_GROUPS];
    Frame frames[MAX_DEPTH];
} ThreadState;

extern Header *rec_header;
extern int rec_modules;       /* record every module call, not root calls only */
extern PyObject *rec_watcher; /* called as watcher(name, control, first, second) where a seam begins, or NULL */
extern int rec_watch;         /* tell the watcher of every call */

uint64_t rec_now(void);
/* Whether the watcher hears of what this thread does: the main thread, or a server's that calls its model. */
int rec_is_heard(const ThreadState *ts);
ThreadState *rec_thread(void); /* this thread's, or NULL when nothing is recorded, which all below take for an answer */
int rec_open(const char *path); /* 0, or an errno */
void rec_close(void);

/* Open a span; returns the depth to hand to rec_end, or -1 when it is not recorded. */
int rec_begin(ThreadState *ts, uint16_t name);
void rec_end(ThreadState *ts, int depth, uint64_t arg, uint8_t flags);
/* Close the innermost open span of this name, and with it whatever an exception left open inside. */
void rec_end_named(ThreadState *ts, uint16_t name, uint64_t arg, uint8_t flags);

/* A seam with a tick kind begins on this thread: count it, and tell the watcher if it should know. `first` and
 * `second` are the call's first two arguments, or NULL. -1 with an exception set when the watcher raises. */
int rec_tick(ThreadState *ts, int kind, uint16_t name, PyObject *first, PyObject *second);

/* A step begins: look now and then what a line costs that the last one has pushed out of the caches. */
void rec_refetch(void);
void rec_refetch_anew(void); /* another recording begins */

/* The id of a name, made when new; 0 ("?") when there are too many. */
uint16_t rec_intern(PyObject *name);

/* add_audit_hook(handlers): see module.c. */
PyObject *rec_add_audit_hook(PyObject *module, PyObject *handlers);

extern PyTypeObject SpanFunction_Type;
extern PyTypeObject Span_Type;

typedef struct {
    int kind;        /* tick kind, or -1 */
    int group;       /* record only the outermost call of this group on a thread, or -1 */
    int network;     /* record only calls on internet sockets, with the bytes they move */
    PyObject *grad;  /* called as grad() -> bool: whether gradients are enabled, or NULL */
    PyObject *after; /* called as after(result, *args, **kwargs) -> int, once a call has returned: the record's arg; or NULL */
} SpanOptions;

PyObject *spanfunction_new(PyObject *func, uint16_t name, SpanOptions options);
PyObject *spanfunction_inner(PyObject *module, PyObject *function); /* inner(function): see module.c */
#define PLAIN_SPAN ((SpanOptions){.kind = -1, .group = -1})

#endif
