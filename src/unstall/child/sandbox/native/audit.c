/* unstall.child.sandbox._audit: hears some audit events (PEP 578), and lets all others pass at the cost of a comparison.
 *
 * A hook in Python is called for every event: id() and sys._getframe() raise one, and then take six times as long. In
 * an experiment that would be time of the program's. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string.h>

typedef struct {
    Py_ssize_t count;
    const char **names; /* those of `looks`, which hold them */
    PyObject *looks;    /* dict: name -> callable; NULL once the interpreter ends */
} Ear;

static int call(PyObject *look, PyObject *args) {
#if PY_VERSION_HEX >= 0x030B0000
    /* As for a hook in Python: a debugger or tracer of the program's does not see it. */
    PyThreadState *state = PyThreadState_Get();
    PyThreadState_EnterTracing(state);
#endif
    PyObject *result = PyObject_Call(look, args, NULL);
#if PY_VERSION_HEX >= 0x030B0000
    PyThreadState_LeaveTracing(state);
#endif
    Py_XDECREF(result);
    return result ? 0 : -1;
}

/* An audit hook is there for good, and for every interpreter: it falls deaf when one is cleared. */
static int hear(const char *event, PyObject *args, void *data) {
    Ear *ear = data;
    for (Py_ssize_t i = 0; i < ear->count; i++)
        if (event[0] == ear->names[i][0] && !strcmp(event, ear->names[i])) {
            PyObject *look = PyDict_GetItemString(ear->looks, event);
            return look ? call(look, args) : 0;
        }
    if (event[0] == 'c' && !strcmp(event, "cpython.PyInterpreterState_Clear")) ear->count = 0;
    return 0;
}

static PyObject *py_hear(PyObject *module, PyObject *looks) {
    (void)module;
    if (!PyDict_Check(looks)) return PyErr_Format(PyExc_TypeError, "hear(dict of callables by the event's name)");
    PyObject *own = PyDict_Copy(looks);
    Ear *ear = PyMem_Calloc(1, sizeof *ear);
    const char **names = PyMem_Calloc((size_t)PyDict_GET_SIZE(looks) + 1, sizeof *names);
    if (!own || !ear || !names) {
        PyErr_NoMemory();
        goto failed;
    }
    Py_ssize_t at = 0, count = 0;
    PyObject *name;
    while (PyDict_Next(own, &at, &name, NULL))
        if (!(names[count++] = PyUnicode_AsUTF8(name))) goto failed;
    *ear = (Ear){.count = count, .names = names, .looks = own};
    if (PySys_AddAuditHook(hear, ear)) goto failed;
    Py_RETURN_NONE;
failed:
    Py_XDECREF(own);
    PyMem_Free(ear);
    PyMem_Free(names);
    return NULL;
}

static PyMethodDef methods[] = {
    {"hear", py_hear, METH_O, "hear(looks): from here on call looks[event](*arguments) for these audit events, for good."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_audit",
    .m_doc = "Audit events, those that are asked for only.",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__audit(void) { return PyModule_Create(&definition); }
