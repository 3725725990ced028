/* unstall.trace._scan: the scanner as Python sees it. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#include "scan.h"

typedef struct {
    PyObject_HEAD
    Events events;
    PyObject *category_list; /* keeps the names alive */
    Category *categories;
    char *buffer; /* what has not been read yet, and PADDING zeros */
    size_t size, room;
    size_t enough; /* bytes worth another look: an event that is not whole is not parsed again for every few more */
    bool resyncing; /* looking for the next event after one that is no JSON */
    bool ended;
    bool busy;
} Scanner;

static const char *space(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) p++;
    return p;
}

/* Looks for "}, {". True and *p at the second brace, or false and *p where to look again with more data. */
static bool resync(const char **p, const char *end) {
    const char *at = *p;
    while (at < end && (at = memchr(at, '}', (size_t)(end - at)))) {
        const char *next = space(at + 1, end);
        if (next < end && *next == ',') next = space(next + 1, end);
        else if (next < end) { at++; continue; }
        if (next == end) return *p = at, false;
        if (*next == '{') return *p = next, true;
        at++;
    }
    return *p = end, false;
}

/* Reads all it can; returns how much of the buffer is done with. */
static size_t scan(Scanner *self, bool final) {
    Events *events = &self->events;
    const char *p = self->buffer, *end = self->buffer + self->size;
    Value ignored;
    while (!events->no_memory) {
        if (self->resyncing) {
            if (!resync(&p, end)) break;
            self->resyncing = false;
        }
        while (*p == ',' || *p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') p++;
        if (p >= end) break;
        if (*p == ']') {
            self->ended = true;
            p++;
            break;
        }
        const char *at = p;
        const bool object = *p == '{';
        const Status status = object ? events_add(events, &at, end) : json_value(&at, end, &ignored);
        if (status == MORE) break;
        if (status == BAD) {
            events->counts[N_MALFORMED]++;
            self->resyncing = true;
            p++;
            continue;
        }
        if (!object) events->counts[N_NO_OBJECT]++;
        p = at;
    }
    if (final && !self->ended) events->counts[N_TRUNCATED] = 1;
    return (size_t)(p - self->buffer);
}

static PyObject *scanner_feed(Scanner *self, PyObject *args, PyObject *kwargs) {
    static char *keywords[] = {"data", "final", NULL};
    Py_buffer data;
    int final = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y*|p:feed", keywords, &data, &final)) return NULL;
    if (self->ended || self->busy) {
        PyBuffer_Release(&data);
        return PyErr_Format(PyExc_ValueError, self->busy ? "in use by another thread" : "the events have ended");
    }
    const size_t needed = self->size + (size_t)data.len + PADDING;
    if (needed > self->room) {
        char *bigger = PyMem_RawRealloc(self->buffer, needed);
        if (!bigger) {
            PyBuffer_Release(&data);
            return PyErr_NoMemory();
        }
        self->buffer = bigger;
        self->room = needed;
    }
    self->busy = true;
    size_t done;
    Py_BEGIN_ALLOW_THREADS;
    memcpy(self->buffer + self->size, data.buf, (size_t)data.len);
    self->size += (size_t)data.len;
    memset(self->buffer + self->size, 0, PADDING);
    done = final || self->size >= self->enough ? scan(self, final) : 0;
    Py_END_ALLOW_THREADS;
    self->busy = false;
    PyBuffer_Release(&data);
    if (self->events.no_memory) return PyErr_NoMemory();
    if (self->ended) return PyBytes_FromStringAndSize(self->buffer + done, (Py_ssize_t)(self->size - done));
    if (done) memmove(self->buffer, self->buffer + done, self->size - done);
    self->size -= done;
    if (done || self->size >= self->enough) self->enough = 2 * self->size;
    Py_RETURN_NONE;
}

/* The bytes of a column, which is empty afterwards: so there are never two copies of more than one. */
static PyObject *scanner_take(Scanner *self, PyObject *args) {
    int which, column;
    if (!PyArg_ParseTuple(args, "ii:take", &which, &column)) return NULL;
    if (which < 0 || which >= TABLES || column < 0 || column >= self->events.tables[which].columns)
        return PyErr_Format(PyExc_IndexError, "no column %d in table %d", column, which);
    Table *table = &self->events.tables[which];
    if (!table->data[column]) return PyBytes_FromStringAndSize("", 0);
    self->ended = true; /* no row can be added now */
    PyObject *result =
        PyBytes_FromStringAndSize(table->data[column], (Py_ssize_t)(table->count * table->width[column]));
    if (!result) return NULL;
    free(table->data[column]);
    table->data[column] = NULL;
    return result;
}

static PyObject *scanner_strings(Scanner *self, PyObject *args) {
    int which;
    if (!PyArg_ParseTuple(args, "i:strings", &which)) return NULL;
    if (which < 0 || which >= STRINGS) return PyErr_Format(PyExc_IndexError, "no string table %d", which);
    const Strings *strings = &self->events.strings[which];
    PyObject *result = PyList_New((Py_ssize_t)strings->count);
    for (size_t i = 0; result && i < strings->count; i++) {
        const StringEntry *entry = &strings->entries[i];
        PyObject *text = PyBytes_FromStringAndSize(strings->bytes + entry->offset, (Py_ssize_t)entry->size);
        if (!text) Py_CLEAR(result);
        else PyList_SET_ITEM(result, (Py_ssize_t)i, text);
    }
    return result;
}

static PyObject *scanner_counts(Scanner *self, PyObject *unused) {
    (void)unused;
    PyObject *result = PyList_New(COUNTS);
    for (int i = 0; result && i < COUNTS; i++) {
        PyObject *count = PyLong_FromUnsignedLongLong(self->events.counts[i]);
        if (!count) Py_CLEAR(result);
        else PyList_SET_ITEM(result, i, count);
    }
    return result;
}

static int read_categories(Scanner *self) {
    const Py_ssize_t count = PyList_GET_SIZE(self->category_list);
    self->categories = PyMem_RawCalloc(count ? (size_t)count : 1, sizeof *self->categories);
    if (!self->categories) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_ssize_t size;
        PyObject *category = PyList_GET_ITEM(self->category_list, i);
        if (!PyTuple_Check(category)) {
            PyErr_SetString(PyExc_TypeError, "a category is a tuple of its name and its code");
            return -1;
        }
        if (!PyArg_ParseTuple(category, "s#b", &self->categories[i].name.data, &size,
                              &self->categories[i].code))
            return -1;
        self->categories[i].name.size = (size_t)size;
    }
    return 0;
}

static PyObject *scanner_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *keywords[] = {"categories", NULL};
    PyObject *given;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:EventScanner", keywords, &given)) return NULL;
    Scanner *self = (Scanner *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->category_list = PySequence_List(given);
    if (!self->category_list || read_categories(self)) {
        Py_DECREF(self);
        return NULL;
    }
    events_init(&self->events, self->categories, (size_t)PyList_GET_SIZE(self->category_list));
    return (PyObject *)self;
}

static void scanner_dealloc(Scanner *self) {
    events_free(&self->events);
    PyMem_RawFree(self->buffer);
    PyMem_RawFree(self->categories);
    Py_XDECREF(self->category_list);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef scanner_methods[] = {
    {"feed", (PyCFunction)(void (*)(void))scanner_feed, METH_VARARGS | METH_KEYWORDS,
     "feed(data, final=False): None while the array of events goes on, else the bytes behind it."},
    {"take", (PyCFunction)scanner_take, METH_VARARGS, "take(table, column): a column's bytes, handed over."},
    {"strings", (PyCFunction)scanner_strings, METH_VARARGS, "strings(which): interned strings as a list of bytes."},
    {"counts", (PyCFunction)scanner_counts, METH_NOARGS, "counts(): events, and what was wrong with them."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject ScannerType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "unstall.trace._scan.EventScanner",
    .tp_basicsize = sizeof(Scanner),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "EventScanner(categories): reads the elements of an array of trace events into columns.",
    .tp_new = scanner_new,
    .tp_dealloc = (destructor)scanner_dealloc,
    .tp_methods = scanner_methods,
};

static bool same_lengths(const Py_buffer *start, const Py_buffer *duration, const Py_buffer *thread) {
    return start->len == duration->len && start->len % 8 == 0 && start->len / 8 * 4 == thread->len &&
           start->len / 8 <= INT32_MAX;
}

static PyObject *py_parents(PyObject *module, PyObject *args) {
    (void)module;
    Py_buffer start, duration, thread;
    Py_ssize_t threads;
    long long slack;
    int depth;
    if (!PyArg_ParseTuple(args, "y*y*y*nLi:parents", &start, &duration, &thread, &threads, &slack, &depth)) return NULL;
    PyObject *result = NULL;
    bool valid = same_lengths(&start, &duration, &thread) && threads >= 0;
    for (Py_ssize_t i = 0; valid && i < thread.len / 4; i++)
        valid = ((int32_t *)thread.buf)[i] >= 0 && ((int32_t *)thread.buf)[i] < threads;
    if (!valid)
        PyErr_SetString(PyExc_ValueError, "start and duration are int64, thread is int32 and below threads, all of one length");
    else if ((result = PyBytes_FromStringAndSize(NULL, thread.len)) &&
             !nest((size_t)thread.len / 4, start.buf, duration.buf, thread.buf, (size_t)threads, slack, depth,
                   (int32_t *)(void *)PyBytes_AS_STRING(result))) {
        Py_CLEAR(result);
        PyErr_NoMemory();
    }
    PyBuffer_Release(&start);
    PyBuffer_Release(&duration);
    PyBuffer_Release(&thread);
    return result;
}

static PyObject *paths_of(const Py_buffer *pointer, const Py_buffer *src, const Py_buffer *lag) {
    const Py_ssize_t nodes = pointer->len / 8 - 1;
    if (pointer->len % 8 || nodes < 0 || src->len % 8 || src->len != lag->len)
        return PyErr_Format(PyExc_ValueError, "pointer and src are int64, lag is float64 and as long as src");
    PyObject *time = PyBytes_FromStringAndSize(NULL, 8 * nodes), *binding = PyBytes_FromStringAndSize(NULL, 8 * nodes);
    bool forward = false;
    if (time && binding) {
        forward = longest_paths((size_t)nodes, (size_t)src->len / 8, pointer->buf, src->buf, lag->buf,
                                (double *)(void *)PyBytes_AS_STRING(time),
                                (int64_t *)(void *)PyBytes_AS_STRING(binding));
        if (!forward) PyErr_SetString(PyExc_ValueError, "an edge that goes backward, or none of the graph's");
    }
    if (forward) return Py_BuildValue("NN", time, binding);
    Py_XDECREF(time);
    Py_XDECREF(binding);
    return NULL;
}

static PyObject *py_longest_paths(PyObject *module, PyObject *args) {
    (void)module;
    Py_buffer pointer, src, lag;
    if (!PyArg_ParseTuple(args, "y*y*y*:longest_paths", &pointer, &src, &lag)) return NULL;
    PyObject *result = paths_of(&pointer, &src, &lag);
    PyBuffer_Release(&pointer);
    PyBuffer_Release(&src);
    PyBuffer_Release(&lag);
    return result;
}

static PyMethodDef functions[] = {
    {"longest_paths", py_longest_paths, METH_VARARGS,
     "longest_paths(pointer, src, lag): float64 bytes of each node's time, int64 bytes of the edge it waits for."},
    {"parents", py_parents, METH_VARARGS, "parents(start, duration, thread, threads, slack, depth): int32 bytes."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "unstall.trace._scan", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit__scan(void) {
    if (PyType_Ready(&ScannerType)) return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    if (PyModule_AddObjectRef(module, "EventScanner", (PyObject *)&ScannerType)) Py_CLEAR(module);
    return module;
}
