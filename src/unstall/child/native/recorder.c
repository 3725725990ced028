/* Clocks, the memory-mapped file, and the stack of open spans of each thread. */
#include "recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A thread's CPU clock is a system call, its run-delay a read: asked only of names that last this long. */
#define CPU_WORTH_NS 500000u
#define DELAY_WORTH_NS 2000000u
/* And of shorter ones only of one call in four: after a large step the kernel's code is out of the caches too, and
 * each question takes ten microseconds. Which ones is drawn, so that no rhythm of the program's can hide from it. */
#define ALWAYS_WORTH_NS 20000000u

Header *rec_header = NULL;
int rec_modules = 0;
PyObject *rec_watcher = NULL;
int rec_watch = 0;

static char file_path[4096];
static Record *tail = NULL; /* the newest records: always the same pages, so writing one never faults */
static uint32_t tail_used = 0;
static uint64_t flushed = 0;
static int full = 0;
static uint32_t generation = 1;
static uint32_t typical_ns[MAX_NAMES + 1]; /* running mean duration of each name */
static int main_calls_models = 0;
static uint32_t serving = 0; /* the thread that calls models, where the main one does not; 0 if there is none */
static uint8_t told[MAX_NAMES + 1];         /* calls of each name that the watcher has heard of */
/* One pointer in initial-exec storage costs one load; the state itself is too large for what dlopen grants. */
static __thread ThreadState *thread_state __attribute__((tls_model("initial-exec")));

static uint64_t clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t rec_now(void) { return clock_ns(CLOCK_MONOTONIC); }

static void leave_thread(void *state) {
    free(state);
    thread_state = NULL;
}

static ThreadState *new_thread_state(void) {
    static pthread_key_t key; /* its destructor is called at a thread's end */
    static int has_key = 0;
    if (!has_key) has_key = !pthread_key_create(&key, leave_thread);
    ThreadState *ts = calloc(1, sizeof *ts);
    if (ts && has_key && pthread_setspecific(key, ts)) {
        free(ts);
        ts = NULL;
    }
    return thread_state = ts;
}

static ThreadState *enter_thread(ThreadState *ts) {
    if (!ts && !(ts = new_thread_state())) return NULL;
    /* After a fork the inherited descriptor tells of the parent's thread. It is not closed: the program may have closed
     * it with all others, and its number may be that of a file of the program's by now. */
    memset(ts, 0, sizeof *ts);
    ts->generation = generation;
    ts->schedstat = UNOPENED;
    ts->thread = (uint32_t)syscall(SYS_gettid);
    ts->is_main = ts->thread == (uint32_t)getpid();
    return ts;
}

ThreadState *rec_thread(void) {
    if (!rec_header) return NULL;
    ThreadState *ts = thread_state;
    return ts && ts->generation == generation ? ts : enter_thread(ts);
}

/* Nanoseconds this thread was runnable but not running: /proc/<pid>/task/<tid>/schedstat, field 2. Only the main
 * thread's file stays open: there may be any number of others. */
static uint64_t run_delay(ThreadState *ts) {
    char text[96];
    int fd = ts->schedstat;
    if (fd == UNOPENED) {
        snprintf(text, sizeof text, "/proc/self/task/%u/schedstat", ts->thread);
        fd = open(text, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || ts->is_main) ts->schedstat = fd < 0 ? UNAVAILABLE : fd;
    }
    if (fd < 0) return UINT64_MAX;
    const ssize_t n = pread(fd, text, sizeof text - 1, 0);
    if (!ts->is_main) close(fd);
    if (n <= 0) return UINT64_MAX;
    text[n] = 0;
    char *second = strchr(text, ' ');
    return second ? strtoull(second, NULL, 10) : UINT64_MAX;
}

int rec_open(const char *path) {
    rec_close();
    if (strlen(path) >= sizeof file_path) return ENAMETOOLONG;
    strcpy(file_path, path);
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) return errno;
    /* Allocate before mapping: writing to a hole of a mapping on a full disk is a fatal SIGBUS. */
    int error = posix_fallocate(fd, 0, MAPPED_BYTES);
    void *page = error ? MAP_FAILED
                       : mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED && !error) error = errno;
    close(fd);
    if (error) return error;
    Header *header = page;
    header->version = FORMAT_VERSION;
    header->record_bytes = sizeof(Record);
    header->tail_records = TAIL_RECORDS;
    header->opened = rec_now();
    header->pid = (uint32_t)getpid();
    header->parent = (uint32_t)getppid();
    memcpy(header->magic, "UNSTALL1", 8);
    rec_header = header;
    tail = (Record *)((char *)page + HEADER_BYTES);
    return 0;
}

void rec_close(void) {
    if (rec_header) munmap(rec_header, MAPPED_BYTES);
    tail = NULL;
    rec_header = NULL;
    tail_used = 0;
    flushed = 0;
    full = 0;
    main_calls_models = 0;
    serving = 0;
    rec_refetch_anew();
    generation++;
}

/* Append the full tail to the file; -1 when the disk does not take it. The file is opened anew each time: a
 * descriptor kept open could be closed by the program, and its number given to a file of the program's. */
static int flush_tail(void) {
    const size_t bytes = TAIL_RECORDS * sizeof(Record);
    size_t done = 0;
    const int fd = open(file_path, O_WRONLY | O_CLOEXEC);
    while (fd >= 0 && done < bytes) {
        const off_t offset = (off_t)(HEADER_BYTES + bytes + flushed * sizeof(Record) + done);
        const ssize_t n = pwrite(fd, (char *)tail + done, bytes - done, offset);
        if (n <= 0 && !(n < 0 && errno == EINTR)) break;
        if (n > 0) done += (size_t)n;
    }
    if (fd >= 0) close(fd);
    if (done < bytes) return -1;
    flushed += TAIL_RECORDS;
    rec_header->flushed = flushed;
    return 0;
}

static inline Record *next_record(void) {
    if (tail_used == TAIL_RECORDS) {
        if (full || flush_tail()) {
            full = 1;
            rec_header->dropped++;
            return NULL;
        }
        tail_used = 0;
    }
    return &tail[tail_used++];
}

static int is_worth_measuring(uint32_t typical) {
    static uint32_t draw = 1;
    if (typical <= CPU_WORTH_NS) return 0;
    draw = draw * 1664525u + 1013904223u; /* Numerical Recipes' generator: its high bits are good enough here */
    return typical > ALWAYS_WORTH_NS || draw >> 30 == 0;
}

int rec_begin(ThreadState *ts, uint16_t name) {
    if (!ts || ts->depth >= MAX_DEPTH) return -1;
    Frame *frame = &ts->frames[ts->depth];
    frame->name = name;
    frame->inside = 0;
    frame->flags = 0;
    if (is_worth_measuring(typical_ns[name])) {
        frame->cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        frame->flags |= FLAG_CPU;
        if (typical_ns[name] > DELAY_WORTH_NS && (frame->delay = run_delay(ts)) != UINT64_MAX)
            frame->flags |= FLAG_DELAY;
    }
    frame->start = rec_now();
    return ts->depth++;
}

static uint32_t units_100ns(uint64_t ns) {
    ns /= 100;
    return ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

void rec_end(ThreadState *ts, int depth, uint64_t arg, uint8_t flags) {
    const uint64_t now = rec_now();
    if (!ts || depth < 0 || depth >= ts->depth) return;
    ts->depth = depth;
    Frame *frame = &ts->frames[depth];
    const uint64_t dur = now - frame->start;
    if (depth > 0) ts->frames[depth - 1].inside += dur;
    const uint32_t typical = typical_ns[frame->name];
    const uint32_t lasted = dur > UINT32_MAX ? UINT32_MAX : (uint32_t)dur;
    typical_ns[frame->name] = typical ? typical - typical / 8 + lasted / 8 : lasted;
    Record *record = next_record();
    if (!record) return;
    record->start = frame->start;
    record->dur = dur;
    record->self = dur > frame->inside ? dur - frame->inside : 0;
    record->cpu = frame->flags & FLAG_CPU ? units_100ns(clock_ns(CLOCK_THREAD_CPUTIME_ID) - frame->cpu) : 0;
    record->delay = 0;
    if (frame->flags & FLAG_DELAY) {
        const uint64_t delay = run_delay(ts) - frame->delay;
        if (delay <= dur + DELAY_WORTH_NS) record->delay = units_100ns(delay);
        else frame->flags &= (uint8_t)~FLAG_DELAY; /* the descriptor is not ours any more */
    }
    record->arg = arg;
    record->thread = ts->thread;
    record->name = frame->name;
    record->depth = (uint8_t)depth;
    record->flags = (uint8_t)(frame->flags | flags | (ts->is_main ? FLAG_MAIN : 0));
    rec_header->count++; /* after the record: a reader never sees a half-written one */
}

void rec_end_named(ThreadState *ts, uint16_t name, uint64_t arg, uint8_t flags) {
    for (int depth = ts ? ts->depth - 1 : -1; depth >= 0; depth--)
        if (ts->frames[depth].name == name) {
            rec_end(ts, depth, arg, flags);
            return;
        }
}

int rec_is_heard(const ThreadState *ts) { return ts->is_main || ts->thread == serving; }

static void look_for_server(ThreadState *ts, int kind) {
    if (ts->is_main) main_calls_models |= kind == TICK_FORWARD || kind == TICK_OPTIMIZER;
    else if (!serving && !main_calls_models && kind == TICK_FORWARD && ++ts->model_calls >= SERVING_CALLS)
        serving = ts->thread;
}

int rec_tick(ThreadState *ts, int kind, uint16_t name, PyObject *first, PyObject *second) {
    if (!ts) return 0;
    rec_header->ticks[kind]++;
    look_for_server(ts, kind);
    if (!rec_is_heard(ts)) return 0;
    if (kind == (rec_header->ticks[TICK_OPTIMIZER] ? TICK_OPTIMIZER : TICK_FORWARD)) rec_refetch();
    if (!rec_watcher) return 0;
    const uint32_t control = ts->is_main ? rec_header->control : 0; /* the parent's wishes are for the main thread */
    if (told[name] < FIRST_CALLS) told[name]++;
    else if (!rec_watch && !control) return 0;
    PyObject *watcher = Py_NewRef(rec_watcher);
    PyObject *result = PyObject_CallFunction(watcher, "HIOO", name, control, first ? first : Py_None,
                                             second ? second : Py_None);
    Py_DECREF(watcher);
    Py_XDECREF(result);
    return result ? 0 : -1;
}
