/* Some audit events (PEP 578), at the cost of a comparison for all others.
 *
 * A hook in Python is called for every event: id() and sys._getframe() raise one, and then take six times as long. In
 * an experiment that would be time of the program's. */
#include "recorder.h"

#include <string.h>

typedef struct {
    PyInterpreterState *interpreter;
    Py_ssize_t count;
    const char **names; /* those of `handlers`, which hold them */
    PyObject *handlers; /* dict: name -> callable */
} Hook;

#if PY_VERSION_HEX < 0x030B0000 /* as CPython 3.10 does for its own hooks */
static void PyThreadState_EnterTracing(PyThreadState *state) {
    state->tracing++;
    state->cframe->use_tracing = 0;
}

static void PyThreadState_LeaveTracing(PyThreadState *state) {
    state->cframe->use_tracing = state->c_tracefunc || state->c_profilefunc;
    state->tracing--;
}
#endif

static int call(PyObject *handler, PyObject *args) {
    PyThreadState *state = PyThreadState_Get();
    PyThreadState_EnterTracing(state); /* as for a hook in Python: a debugger of the program's does not see it */
    PyObject *result = PyObject_Call(handler, args, NULL);
    PyThreadState_LeaveTracing(state);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

/* An audit hook is there for good, and called for every interpreter: it is for its own, until that one is cleared. */
static int on_event(const char *event, PyObject *args, void *data) {
    Hook *hook = data;
    for (Py_ssize_t i = 0; i < hook->count; i++)
        if (event[0] == hook->names[i][0] && !strcmp(event, hook->names[i])) {
            if (PyInterpreterState_Get() != hook->interpreter) return 0;
            PyObject *handler = PyDict_GetItemString(hook->handlers, event);
            return handler ? call(handler, args) : 0;
        }
    if (event[0] == 'c' && !strcmp(event, "cpython.PyInterpreterState_Clear") &&
        PyInterpreterState_Get() == hook->interpreter)
        hook->count = 0;
    return 0;
}

PyObject *rec_add_audit_hook(PyObject *module, PyObject *handlers) {
    (void)module;
    if (!PyDict_Check(handlers)) return PyErr_Format(PyExc_TypeError, "handlers are a dict of callables by event");
    PyObject *own = PyDict_Copy(handlers), *name;
    Hook *hook = PyMem_Calloc(1, sizeof *hook);
    const char **names = PyMem_Calloc((size_t)PyDict_GET_SIZE(handlers) + 1, sizeof *names);
    Py_ssize_t at = 0, count = 0;
    if (!own || !hook || !names) {
        PyErr_NoMemory();
        goto failed;
    }
    while (PyDict_Next(own, &at, &name, NULL))
        if (!(names[count++] = PyUnicode_AsUTF8(name))) goto failed;
    *hook = (Hook){.interpreter = PyInterpreterState_Get(), .count = count, .names = names, .handlers = own};
    if (PySys_AddAuditHook(on_event, hook)) goto failed;
    Py_RETURN_NONE;
failed:
    Py_XDECREF(own);
    PyMem_Free(hook);
    PyMem_Free(names);
    return NULL;
}
