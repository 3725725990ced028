/* SpanFunction: a callable that records each call of the one it wraps.
 *
 * It adds no Python frame, so tracebacks and sys._getframe depths stay as they were; it binds like a
 * function; attributes, with them __class__ (so that isinstance takes it for a function) and __code__ (where inspect
 * finds the source and the signature), are those of the wrapped one; and it pickles by its name, or as the wrapped one.
 */
#include "recorder.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/socket.h>

#define STACK_RESERVE (256u << 10)

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *func;
    PyObject *weakrefs;
    uint16_t name;
    SpanOptions options;
} SpanFunction;

/* Bytes moved by a socket call, from what it returned: a count, or the data. */
static uint64_t bytes_of(PyObject *result) {
    if (PyLong_Check(result)) {
        const long long n = PyLong_AsLongLong(result);
        if (n == -1) PyErr_Clear();
        return n > 0 ? (uint64_t)n : 0;
    }
    if (PyBytes_Check(result)) return (uint64_t)PyBytes_GET_SIZE(result);
    if (PyTuple_Check(result) && PyTuple_GET_SIZE(result) && PyBytes_Check(PyTuple_GET_ITEM(result, 0)))
        return (uint64_t)PyBytes_GET_SIZE(PyTuple_GET_ITEM(result, 0));
    return 0;
}

/* Local sockets are how processes of one program talk; only the internet families are the network. */
static int is_internet(PyObject *sock) {
    PyObject *family = PyObject_GetAttrString(sock, "family");
    if (!family) {
        PyErr_Clear();
        return 0;
    }
    const long value = PyLong_AsLong(family);
    Py_DECREF(family);
    if (value == -1) PyErr_Clear();
    return value == AF_INET || value == AF_INET6;
}

static PyObject *call_network(SpanFunction *self, ThreadState *ts, PyObject *const *args, size_t nargsf,
                              PyObject *kwnames) {
    const int internet = PyVectorcall_NARGS(nargsf) > 0 && is_internet(args[0]);
    const int depth = internet ? rec_begin(ts, self->name) : -1;
    PyObject *result = PyObject_Vectorcall(self->func, args, nargsf, kwnames);
    if (depth >= 0) /* not `ts`: the recording may have been closed inside the call */
        rec_end(rec_thread(), depth, result ? bytes_of(result) : 0, FLAG_NETWORK | (result ? 0 : FLAG_ERROR));
    return result;
}

/* Whether this call runs without gradients; a probe that fails says nothing. */
static uint8_t nograd_flag(PyObject *grad) {
    PyObject *enabled = PyObject_CallNoArgs(grad);
    if (!enabled) PyErr_Clear();
    const uint8_t flag = enabled == Py_False ? FLAG_NOGRAD : 0;
    Py_XDECREF(enabled);
    return flag;
}

/* What `after` says of a call that returned. -1 with an exception set: what a signal handler of the program's raised. */
static int ask(PyObject *after, PyObject *result, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
               uint64_t *arg) {
    const Py_ssize_t total = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    PyObject *few[16], **all = total < 16 ? few : PyMem_Malloc((size_t)(total + 1) * sizeof *all);
    if (!all) return 0;
    all[0] = result;
    for (Py_ssize_t i = 0; i < total; i++) all[i + 1] = args[i];
    PyObject *answer = PyObject_Vectorcall(after, all, (size_t)(nargs + 1), kwnames);
    if (all != few) PyMem_Free(all);
    if (!answer) {
        if (!PyErr_ExceptionMatches(PyExc_RecursionError)) return -1;
        PyErr_Clear(); /* the program itself was within its limit */
        return 0;
    }
    *arg = PyLong_Check(answer) ? PyLong_AsUnsignedLongLongMask(answer) : 0;
    Py_DECREF(answer);
    return 0;
}

#if PY_VERSION_HEX < 0x030C0000
/* Whether the C stack is nearly used up. Python 3.11 takes none for calls between Python functions, which under a raised
 * recursion limit may go deeper than it allows for the calls through here, and checks it only from 3.12 on. */
static int is_stack_spent(void) {
    static __thread struct { char *low, *least; } stack __attribute__((tls_model("initial-exec")));
    char here;
    pthread_attr_t attributes;
    if (!stack.least && !pthread_getattr_np(pthread_self(), &attributes)) {
        size_t size = 0;
        pthread_attr_getstack(&attributes, (void **)&stack.low, &size);
        stack.least = stack.low + (size < 4 * STACK_RESERVE ? size / 4 : STACK_RESERVE);
        pthread_attr_destroy(&attributes);
    }
    return &here >= stack.low && &here < stack.least; /* below: the stack of a coroutine */
}
#endif

static PyObject *spanfunction_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    SpanFunction *self = (SpanFunction *)callable;
    const SpanOptions *options = &self->options;
#if PY_VERSION_HEX < 0x030C0000
    if (is_stack_spent()) return PyErr_Format(PyExc_RecursionError, "maximum recursion depth exceeded");
#endif
    ThreadState *ts = rec_thread();
    if (!ts) return PyObject_Vectorcall(self->func, args, nargsf, kwnames);
    if (options->network) return call_network(self, ts, args, nargsf, kwnames);
    const int inner = options->group >= 0 && ts->roots[options->group] > 0;
    if (inner && !(rec_modules && options->group == 0 && rec_is_heard(ts)))
        return PyObject_Vectorcall(self->func, args, nargsf, kwnames);
    const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    const Py_ssize_t total = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    PyObject *first = nargs > 0 ? args[0] : NULL;
    uint8_t flags = inner ? FLAG_MODULE : 0;
    if (!inner && options->kind >= 0) {
        if (rec_tick(ts, options->kind, self->name, first, total > 1 ? args[1] : NULL)) return NULL;
        if (options->grad) flags |= nograd_flag(options->grad);
    }
    const uint32_t generation = ts->generation;
    if (options->group >= 0) ts->roots[options->group]++;
    const int depth = rec_begin(ts, self->name);
    PyObject *result = PyObject_Vectorcall(self->func, args, nargsf, kwnames);
    uint64_t arg = (uint64_t)(uintptr_t)first;
    if (result && options->after && ask(options->after, result, args, nargs, kwnames, &arg)) Py_CLEAR(result);
    ts = rec_thread();
    if (!ts || ts->generation != generation) return result; /* forked, closed or reopened inside the call */
    if (options->group >= 0) ts->roots[options->group]--;
    rec_end(ts, depth, arg, (uint8_t)(flags | (result ? 0 : FLAG_ERROR)));
    return result;
}

PyObject *spanfunction_new(PyObject *func, uint16_t name, SpanOptions options) {
    SpanFunction *self = PyObject_GC_New(SpanFunction, &SpanFunction_Type);
    if (!self) return NULL;
    self->vectorcall = spanfunction_call;
    self->func = Py_NewRef(func);
    self->weakrefs = NULL;
    self->name = name;
    self->options = options;
    Py_XINCREF(options.grad);
    Py_XINCREF(options.after);
    PyObject_GC_Track((PyObject *)self);
    return (PyObject *)self;
}

/* What it wraps: no attribute tells, a function has none such. */
PyObject *spanfunction_inner(PyObject *module, PyObject *function) {
    (void)module;
    return Py_NewRef(Py_IS_TYPE(function, &SpanFunction_Type) ? ((SpanFunction *)function)->func : function);
}

static int spanfunction_traverse(SpanFunction *self, visitproc visit, void *arg) {
    Py_VISIT(self->func);
    Py_VISIT(self->options.grad);
    Py_VISIT(self->options.after);
    return 0;
}

static int spanfunction_clear(SpanFunction *self) {
    Py_CLEAR(self->func);
    Py_CLEAR(self->options.grad);
    Py_CLEAR(self->options.after);
    return 0;
}

static void spanfunction_dealloc(SpanFunction *self) {
    PyObject_GC_UnTrack(self);
    if (self->weakrefs) PyObject_ClearWeakRefs((PyObject *)self);
    spanfunction_clear(self);
    PyObject_GC_Del(self);
}

static PyObject *spanfunction_get(PyObject *self, PyObject *obj, PyObject *type) {
    (void)type;
    if (!obj || obj == Py_None) return Py_NewRef(self);
    return PyMethod_New(self, obj);
}

static PyObject *spanfunction_getattro(PyObject *self, PyObject *name) {
    PyObject *value = PyObject_GenericGetAttr(self, name);
    if (value || !PyErr_ExceptionMatches(PyExc_AttributeError)) return value;
    PyErr_Clear();
    return PyObject_GetAttr(((SpanFunction *)self)->func, name);
}

/* Whoever sets an attribute of the wrapper (a signature, a mark) means the function. */
static int spanfunction_setattro(PyObject *self, PyObject *name, PyObject *value) {
    PyObject *func = ((SpanFunction *)self)->func;
    return value ? PyObject_SetAttr(func, name, value) : PyObject_DelAttr(func, name);
}

static PyObject *spanfunction_repr(SpanFunction *self) { return PyObject_Repr(self->func); }

static PyObject *get_of_function(SpanFunction *self, void *name) { return PyObject_GetAttrString(self->func, name); }

/* Whether its own name, in its own module, leads to it: so it is for a decorated function. */
static int is_found_by_name(PyObject *self, PyObject *qualname) {
    PyObject *module = PyObject_GetAttrString(self, "__module__");
    PyObject *modules = PyImport_GetModuleDict(); /* borrowed */
    PyObject *found = module && modules ? PyObject_GetItem(modules, module) : NULL;
    PyObject *names = found ? PyObject_CallMethod(qualname, "split", "s", ".") : NULL;
    for (Py_ssize_t i = 0; names && found && i < PyList_GET_SIZE(names); i++)
        Py_SETREF(found, PyObject_GetAttr(found, PyList_GET_ITEM(names, i)));
    const int same = names && found == self;
    PyErr_Clear();
    Py_XDECREF(names);
    Py_XDECREF(found);
    Py_XDECREF(module);
    return same;
}

/* Pickles by its name where that leads to it, as functions do; otherwise as the wrapped function, by means of the
 * standard library alone. Either way the reader needs no unstall that the program does not import itself. */
static PyObject *spanfunction_reduce(SpanFunction *self, PyObject *protocol) {
    (void)protocol;
    PyObject *qualname = PyObject_GetAttrString((PyObject *)self, "__qualname__");
    if (qualname && PyUnicode_Check(qualname) && is_found_by_name((PyObject *)self, qualname)) return qualname;
    PyErr_Clear();
    Py_XDECREF(qualname);
    PyObject *operator= PyImport_ImportModule("operator");
    if (!operator) return NULL;
    PyObject *first = PyObject_CallMethod(operator, "itemgetter", "i", 0);
    Py_DECREF(operator);
    if (!first) return NULL;
    PyObject *result = Py_BuildValue("(O((O)))", first, self->func);
    Py_DECREF(first);
    return result;
}

static PyMethodDef spanfunction_methods[] = {
    {"__reduce_ex__", (PyCFunction)spanfunction_reduce, METH_O, NULL}, /* that of object would ask __class__ */
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef spanfunction_getset[] = {
    {"__class__", (getter)get_of_function, NULL, NULL, "__class__"},
    {"__doc__", (getter)get_of_function, NULL, NULL, "__doc__"},
    {"__module__", (getter)get_of_function, NULL, NULL, "__module__"},
    {"__name__", (getter)get_of_function, NULL, NULL, "__name__"},
    {"__qualname__", (getter)get_of_function, NULL, NULL, "__qualname__"},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject SpanFunction_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "unstall.SpanFunction",
    .tp_basicsize = sizeof(SpanFunction),
    .tp_dealloc = (destructor)spanfunction_dealloc,
    .tp_vectorcall_offset = offsetof(SpanFunction, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_repr = (reprfunc)spanfunction_repr,
    .tp_getattro = spanfunction_getattro,
    .tp_setattro = spanfunction_setattro,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_traverse = (traverseproc)spanfunction_traverse,
    .tp_clear = (inquiry)spanfunction_clear,
    .tp_weaklistoffset = offsetof(SpanFunction, weakrefs),
    .tp_methods = spanfunction_methods,
    .tp_getset = spanfunction_getset,
    .tp_descr_get = spanfunction_get,
};
