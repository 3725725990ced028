/* unstall.child._recorder: the recorder as Python sees it. */
#include "recorder.h"

#include <string.h>

static PyObject *names = NULL;   /* name -> id */
static PyObject *on_name = NULL; /* called as on_name(id, name) for each new name */

/* A name in the program's text is one object, met again and again: its id is found by its address. */
#define RECENT 16
static struct {
    PyObject *name; /* held, so that no other string can come to lie there */
    uint16_t id;
} recent[RECENT];

static uint16_t look_up(PyObject *name) {
    if (!PyUnicode_Check(name)) return 0;
    PyObject *known = PyDict_GetItemWithError(names, name);
    if (known) return (uint16_t)PyLong_AsLong(known);
    PyErr_Clear();
    const Py_ssize_t id = PyDict_GET_SIZE(names) + 1; /* 0 is "?" */
    if (id > MAX_NAMES) return 0;
    PyObject *number = PyLong_FromSsize_t(id);
    if (!number || PyDict_SetItem(names, name, number)) {
        PyErr_Clear();
        Py_XDECREF(number);
        return 0;
    }
    if (on_name) {
        PyObject *result = PyObject_CallFunctionObjArgs(on_name, number, name, NULL);
        if (!result) PyErr_Clear();
        Py_XDECREF(result);
    }
    Py_DECREF(number);
    return (uint16_t)id;
}

uint16_t rec_intern(PyObject *name) {
    const unsigned slot = ((uintptr_t)name >> 4) % RECENT;
    if (recent[slot].name == name) return recent[slot].id;
    const uint16_t id = look_up(name);
    if (!id) return 0;
    Py_XSETREF(recent[slot].name, Py_NewRef(name));
    return recent[slot].id = id;
}

static PyObject *py_open(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *path;
    if (!PyArg_ParseTuple(args, "O&:open", PyUnicode_FSConverter, &path)) return NULL;
    const int error = rec_open(PyBytes_AS_STRING(path));
    Py_DECREF(path);
    if (!error) Py_RETURN_NONE;
    errno = error;
    return PyErr_SetFromErrno(PyExc_OSError);
}

static PyObject *py_close(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    rec_close();
    Py_RETURN_NONE;
}

static PyObject *py_intern(PyObject *module, PyObject *name) {
    (void)module;
    if (!PyUnicode_Check(name)) return PyErr_Format(PyExc_TypeError, "a name is a str");
    return PyLong_FromLong(rec_intern(name));
}

static PyObject *py_begin(PyObject *module, PyObject *name) {
    (void)module;
    const long id = PyLong_AsLong(name);
    if (id == -1 && PyErr_Occurred()) return NULL;
    rec_begin(rec_thread(), (uint16_t)id);
    Py_RETURN_NONE;
}

static PyObject *py_end(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    if (nargs < 1 || nargs > 2) return PyErr_Format(PyExc_TypeError, "end(name, arg=0)");
    const long id = PyLong_AsLong(args[0]);
    const unsigned long long arg = nargs == 2 ? PyLong_AsUnsignedLongLong(args[1]) : 0;
    if (PyErr_Occurred()) return NULL;
    rec_end_named(rec_thread(), (uint16_t)id, arg, 0);
    Py_RETURN_NONE;
}

static PyObject *py_tick(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    if (nargs != 3) return PyErr_Format(PyExc_TypeError, "tick(kind, id, subject)");
    const long kind = PyLong_AsLong(args[0]), id = PyLong_AsLong(args[1]);
    if (PyErr_Occurred()) return NULL;
    if (kind < 0 || kind >= TICK_KINDS) return PyErr_Format(PyExc_ValueError, "no tick kind %ld", kind);
    if (rec_tick(rec_thread(), (int)kind, (uint16_t)id, args[2], NULL)) return NULL;
    Py_RETURN_NONE;
}

/* Hooks are called as hook(subject, args, kwargs). In C, because after a large step everything is out of the caches, and
 * a Python frame then costs microseconds. What they record is in `self`: the name, and above it the kind. */
static PyObject *hook_before(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    const long packed = PyLong_AsLong(self);
    if (nargs < 1) return PyErr_Format(PyExc_TypeError, "a hook is called with its subject");
    if (rec_tick(rec_thread(), (int)(packed >> 16), (uint16_t)packed, args[0], NULL)) return NULL;
    rec_begin(rec_thread(), (uint16_t)packed); /* the state anew: the watcher may have closed the recording */
    Py_RETURN_NONE;
}

static PyObject *hook_after(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs) rec_end_named(rec_thread(), (uint16_t)PyLong_AsLong(self), (uint64_t)(uintptr_t)args[0], 0);
    Py_RETURN_NONE;
}

static PyMethodDef before_method = {"before", (PyCFunction)(void (*)(void))hook_before, METH_FASTCALL, NULL};
static PyMethodDef after_method = {"after", (PyCFunction)(void (*)(void))hook_after, METH_FASTCALL, NULL};

static PyObject *py_hooks(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *name;
    int kind;
    if (!PyArg_ParseTuple(args, "Ui:hooks", &name, &kind)) return NULL;
    if (kind < 0 || kind >= TICK_KINDS) return PyErr_Format(PyExc_ValueError, "no tick kind %d", kind);
    PyObject *packed = PyLong_FromLong((long)kind << 16 | rec_intern(name));
    if (!packed) return NULL;
    PyObject *pair = Py_BuildValue("(NN)", PyCFunction_New(&before_method, packed), PyCFunction_New(&after_method, packed));
    Py_DECREF(packed);
    return pair;
}

/* In C, because Python would run a pending signal handler where a Python function begins, and the collector ignores
 * what its callbacks raise: the program's KeyboardInterrupt would be lost. */
static PyObject *gc_phase(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 2 || !PyUnicode_Check(args[0]) || !PyDict_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "a collector's callback is called with a phase and a dictionary");
    if (!rec_header) Py_RETURN_NONE;
    const uint16_t name = (uint16_t)PyLong_AsLong(self);
    if (PyUnicode_CompareWithASCIIString(args[0], "start") == 0) {
        rec_begin(rec_thread(), name);
    } else {
        PyObject *generation = PyDict_GetItemString(args[1], "generation"); /* borrowed */
        rec_end_named(rec_thread(), name, generation && PyLong_Check(generation) ? PyLong_AsLong(generation) : 0, 0);
    }
    Py_RETURN_NONE;
}

static PyMethodDef gc_method = {"collection", (PyCFunction)(void (*)(void))gc_phase, METH_FASTCALL, NULL};

static PyObject *py_gc_callback(PyObject *module, PyObject *name) {
    (void)module;
    if (!PyUnicode_Check(name)) return PyErr_Format(PyExc_TypeError, "a name is a str");
    PyObject *id = PyLong_FromLong(rec_intern(name));
    if (!id) return NULL;
    PyObject *callback = PyCFunction_New(&gc_method, id);
    Py_DECREF(id);
    return callback;
}

static PyObject *py_wrap(PyObject *module, PyObject *args, PyObject *kwargs) {
    (void)module;
    static char *keywords[] = {"func", "name", "kind", "group", "network", "grad", "after", NULL};
    PyObject *func, *name, *grad = NULL, *after = NULL;
    SpanOptions options = PLAIN_SPAN;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OU|iipOO:wrap", keywords, &func, &name, &options.kind,
                                     &options.group, &options.network, &grad, &after))
        return NULL;
    if (options.kind >= TICK_KINDS || options.group >= ROOT_GROUPS)
        return PyErr_Format(PyExc_ValueError, "no such kind or group");
    options.grad = grad == Py_None ? NULL : grad;
    options.after = after == Py_None ? NULL : after;
    return spanfunction_new(func, rec_intern(name), options);
}

static PyObject *py_watch(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    if (nargs != 2) return PyErr_Format(PyExc_TypeError, "watch(callback or None, every)");
    Py_XSETREF(rec_watcher, args[0] == Py_None ? NULL : Py_NewRef(args[0]));
    rec_watch = PyObject_IsTrue(args[1]);
    Py_RETURN_NONE;
}

static PyObject *py_control(PyObject *module, PyObject *value) {
    (void)module;
    const unsigned long control = PyLong_AsUnsignedLong(value);
    if (PyErr_Occurred()) return NULL;
    if (rec_header) rec_header->control = (uint32_t)control;
    Py_RETURN_NONE;
}

static PyObject *py_on_name(PyObject *module, PyObject *callback) {
    (void)module;
    Py_XSETREF(on_name, callback == Py_None ? NULL : Py_NewRef(callback));
    Py_RETURN_NONE;
}

static PyObject *py_modules(PyObject *module, PyObject *flag) {
    (void)module;
    rec_modules = PyObject_IsTrue(flag);
    Py_RETURN_NONE;
}

static PyObject *py_names(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyDict_Copy(names);
}

static PyMethodDef methods[] = {
    {"open", py_open, METH_VARARGS, "open(path): begin a new recording file; OSError when it cannot be made."},
    {"close", py_close, METH_NOARGS, "close(): stop recording; wrapped functions go on, unrecorded."},
    {"intern", py_intern, METH_O, "intern(name) -> int: the id of a name."},
    {"add_audit_hook", rec_add_audit_hook, METH_O,
     "add_audit_hook(handlers): from here on call handlers[event](*arguments) for these audit events, for good."},
    {"begin", py_begin, METH_O, "begin(id): open a span on this thread."},
    {"end", (PyCFunction)(void (*)(void))py_end, METH_FASTCALL, "end(id, arg=0): close the innermost open span of this name."},
    {"tick", (PyCFunction)(void (*)(void))py_tick, METH_FASTCALL, "tick(kind, id, subject): count one event of a kind."},
    {"hooks", py_hooks, METH_VARARGS,
     "hooks(name, kind) -> (before, after): to be called with a subject where a span of this name begins and ends."},
    {"gc_callback", py_gc_callback, METH_O, "gc_callback(name) -> callable: for gc.callbacks, a span each collection."},
    {"wrap", (PyCFunction)(void (*)(void))py_wrap, METH_VARARGS | METH_KEYWORDS,
     "wrap(func, name, kind=-1, group=-1, network=False, grad=None, after=None): a callable that records each call of func."},
    {"inner", spanfunction_inner, METH_O, "inner(function): what wrap() or a span wrapped, or the function itself."},
    {"watch", (PyCFunction)(void (*)(void))py_watch, METH_FASTCALL,
     "watch(callback, every): call back as callback(id, control, first, second) where a seam begins on the main\n"
     "thread: for the first calls of each name, for all when `every`, and whenever the parent sets control."},
    {"control", py_control, METH_O, "control(value): set the control word, 0 when the wish is fulfilled."},
    {"on_name", py_on_name, METH_O, "on_name(callback or None): call back as callback(id, name) for each new name."},
    {"modules", py_modules, METH_O, "modules(flag): record every module call, not only root calls."},
    {"names", py_names, METH_NOARGS, "names() -> dict: the ids given so far."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_recorder",
    .m_doc = "Span records in a memory-mapped file, at the cost of two clock readings.",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__recorder(void) {
    if (PyType_Ready(&SpanFunction_Type) || PyType_Ready(&Span_Type)) return NULL;
    if (!names && !(names = PyDict_New())) return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    if (PyModule_AddObjectRef(module, "SpanFunction", (PyObject *)&SpanFunction_Type) ||
        PyModule_AddObjectRef(module, "span", (PyObject *)&Span_Type)) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
