/* span("name"): a span the user marks, as a context manager or a decorator. */
#include "recorder.h"

typedef struct {
    PyObject_HEAD
    int entered; /* how often, and not left yet: one span object may be entered again inside itself */
    uint16_t name;
} Span;

static PyObject *span_new(PyTypeObject *type, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    PyObject *name = PyVectorcall_NARGS(nargsf) == 1 ? args[0] : NULL;
    if (!name || kwnames) {
        PyErr_SetString(PyExc_TypeError, "span() takes one argument: the name of the span, or a function to record");
        return NULL;
    }
    if (!PyUnicode_Check(name)) {
        if (!PyCallable_Check(name)) {
            PyErr_Format(PyExc_TypeError, "span() takes a name or a function, not %.100s", Py_TYPE(name)->tp_name);
            return NULL;
        }
        PyObject *qualname = PyObject_GetAttrString(name, "__qualname__"); /* bare @span */
        if (!qualname) return NULL;
        PyObject *wrapped = spanfunction_new(name, rec_intern(qualname), PLAIN_SPAN);
        Py_DECREF(qualname);
        return wrapped;
    }
    Span *self = PyObject_New(Span, type);
    if (!self) return NULL;
    self->name = rec_intern(name);
    self->entered = 0;
    return (PyObject *)self;
}

static PyObject *span_enter(Span *self, PyObject *unused) {
    (void)unused;
    if (rec_begin(rec_thread(), self->name) >= 0) self->entered++;
    return Py_NewRef(self);
}

static PyObject *span_exit(Span *self, PyObject *const *args, Py_ssize_t nargs) {
    if (self->entered > 0) {
        const int raised = nargs > 0 && args[0] != Py_None;
        rec_end_named(rec_thread(), self->name, 0, raised ? FLAG_ERROR : 0);
        self->entered--;
    }
    Py_RETURN_FALSE;
}

static PyObject *span_call(Span *self, PyObject *args, PyObject *kwargs) {
    PyObject *func;
    if (kwargs || !PyArg_ParseTuple(args, "O:span", &func)) return NULL;
    return spanfunction_new(func, self->name, PLAIN_SPAN);
}

static PyMethodDef span_methods[] = {
    {"__enter__", (PyCFunction)span_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))span_exit, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

PyTypeObject Span_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "unstall.span",
    .tp_doc = "span(name): record the time of a `with` block, or of each call of the function it decorates.",
    .tp_basicsize = sizeof(Span),
    .tp_dealloc = (destructor)PyObject_Free,
    .tp_call = (ternaryfunc)span_call,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_methods = span_methods,
    .tp_vectorcall = (vectorcallfunc)(void (*)(void))span_new,
};
