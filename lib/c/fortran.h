/* The handwritten part of the Fortran library, included by the file generated from the table of functions.

   Fortran passes all arguments by reference, followed by the lengths of CHARACTER arguments by value. A handle is an
   INTEGER with the value of the C handle, a status consists of the same five integers, and a LOGICAL is 0 or 1. */
#include "mpi.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The symbols that compilers use for a name. Names without P are weak, so that libraries can replace them. */
#define NAMES(lower, upper) \
    NAME(lower, PMPI_##upper, ) NAME(lower, pmpi_##lower, ) NAME(lower, pmpi_##lower##__, ) NAME(lower, MPI_##upper, weak, ) \
        NAME(lower, mpi_##lower, weak, ) NAME(lower, mpi_##lower##_, weak, ) NAME(lower, mpi_##lower##__, weak, )
#define NAME(lower, name, ...) extern __typeof__(pmpi_##lower##_) name __attribute__((__VA_ARGS__ alias("pmpi_" #lower "_")));

/* In mpi_f08, the argument ierror is optional. */
#define OPTIONAL(ierr) \
    MPI_Fint ignored; \
    if (ierr == NULL) \
        ierr = &ignored;

/* The names of mpi_f08, with and without large counts. Programs call the weak ones. MPICH's module uses pmpir_ for
   PMPI. */
#define NAMES_F08(lower) NAMES_F08_OF(lower, lower##_f08_)
#define NAMES_F08_LARGE(lower) NAMES_F08_OF(lower##_c, lower##_f08_large_)
#define NAMES_F08_OF(lower, name) NAME(lower, pmpi_##name, ) NAME(lower, pmpir_##name, ) NAME(lower, mpi_##name, weak, )

/* Defines a weak name for a procedure. */
#define WEAK(name, procedure) extern __typeof__(procedure) name __attribute__((weak, alias(#procedure)));

/* The common blocks of mpif.h: a program denotes a constant by passing its address. If an executable defines the
   blocks, the library uses the same ones. Compilers align them like this. */
#define COMMON __attribute__((aligned(16)))
COMMON struct { MPI_Fint bottom, in_place, status_ignore[MPI_F_STATUS_SIZE]; } mpipriv1_;
COMMON struct { MPI_Fint statuses_ignore[MPI_F_STATUS_SIZE], errcodes_ignore[1]; } mpipriv2_;
COMMON struct { char argvs_null, argv_null; } mpiprivc_;
COMMON MPI_Fint mpifcmb5_, mpifcmb9_, mpifcmba_[1]; /* MPI_UNWEIGHTED, MPI_WEIGHTS_EMPTY, MPI_BUFFER_AUTOMATIC */

/* The same for mpi_f08: MPICH's module and this library's module have variables with these names. */
extern MPI_F08_status MPIR_F08_MPI_STATUS_IGNORE_OBJ, MPIR_F08_MPI_STATUSES_IGNORE_OBJ[1];
extern int MPIR_F08_MPI_IN_PLACE, MPIR_F08_MPI_BOTTOM;
MPI_Fint __mpi_f08_link_constants_MOD_mpi_unweighted, __mpi_f08_link_constants_MOD_mpi_weights_empty;
MPI_Fint __mpi_f08_link_constants_MOD_mpi_errcodes_ignore[1], __mpi_f08_link_constants_MOD_mpi_buffer_automatic[1];
char __mpi_f08_link_constants_MOD_mpi_argv_null[1], __mpi_f08_link_constants_MOD_mpi_argvs_null[1];

__attribute__((constructor)) static void set_ignore(void) {
    MPI_F_STATUS_IGNORE = mpipriv1_.status_ignore;
    MPI_F_STATUSES_IGNORE = mpipriv2_.statuses_ignore;
}

static inline void *buffer_of(const void *p) {
    if (p == &mpipriv1_.bottom || p == &MPIR_F08_MPI_BOTTOM)
        return MPI_BOTTOM;
    if (p == mpifcmba_ || p == __mpi_f08_link_constants_MOD_mpi_buffer_automatic)
        return MPI_BUFFER_AUTOMATIC;
    return p == &mpipriv1_.in_place || p == &MPIR_F08_MPI_IN_PLACE ? MPI_IN_PLACE : (void *)p;
}

/* Converts a buffer that a call returns to its address in mpi_f08. */
static inline void *f08_buffer(void *p) { return p == MPI_BUFFER_AUTOMATIC ? __mpi_f08_link_constants_MOD_mpi_buffer_automatic : p; }

static inline MPI_Status *status_of(const void *p) {
    if (p == mpipriv1_.status_ignore || p == &MPIR_F08_MPI_STATUS_IGNORE_OBJ)
        return MPI_STATUS_IGNORE;
    return p == mpipriv2_.statuses_ignore || p == MPIR_F08_MPI_STATUSES_IGNORE_OBJ ? MPI_STATUSES_IGNORE : (MPI_Status *)p;
}

static inline int *weights_of(const MPI_Fint *p) {
    if (p == &mpifcmb5_ || p == &__mpi_f08_link_constants_MOD_mpi_unweighted)
        return MPI_UNWEIGHTED;
    return p == &mpifcmb9_ || p == &__mpi_f08_link_constants_MOD_mpi_weights_empty ? MPI_WEIGHTS_EMPTY : (int *)p;
}

static inline int *errcodes_of(MPI_Fint *p) {
    return p == mpipriv2_.errcodes_ignore || p == __mpi_f08_link_constants_MOD_mpi_errcodes_ignore ? MPI_ERRCODES_IGNORE : p;
}

/* Copies a CHARACTER argument without trailing blanks to a buffer of length + 1. */
static inline char *string_of(char *to, const char *from, size_t length) {
    while (length > 0 && from[length - 1] == ' ')
        length--;
    to[length] = 0;
    return memcpy(to, from, length);
}

/* The same without leading blanks, for keys and values of an info object. */
static inline char *word_of(char *to, const char *from, size_t length) {
    for (; length > 0 && *from == ' '; length--)
        from++;
    return string_of(to, from, length);
}

static inline void set_string(char *to, size_t length, const char *from) {
    size_t n = strnlen(from, length);
    memcpy(to, from, n);
    memset(to + n, ' ', length - n);
}

/* Converts the arguments of a command: an array of strings that ends with a blank one, stride strings apart. A single
   free releases the result. */
static char **arguments_of(const char *from, size_t length, size_t stride) {
    size_t n = 0;
    while (strspn(from + n * stride * length, " ") < length)
        n++;
    char **list = malloc((n + 1) * sizeof *list + n * (length + 1));
    if (list == NULL)
        return NULL;
    char *text = (char *)(list + n + 1);
    for (size_t i = 0; i < n; i++)
        list[i] = string_of(text + i * (length + 1), from + i * stride * length, length);
    list[n] = NULL;
    return list;
}

void pmpi_init_(MPI_Fint *ierr) { OPTIONAL(ierr) *ierr = PMPI_Init(NULL, NULL); }

void pmpi_init_thread_(MPI_Fint *required, MPI_Fint *provided, MPI_Fint *ierr) { OPTIONAL(ierr) *ierr = PMPI_Init_thread(NULL, NULL, *required, provided); }

void pmpi_info_create_env_(MPI_Fint *info, MPI_Fint *ierr) { OPTIONAL(ierr) *ierr = PMPI_Info_create_env(0, NULL, info); }

void pmpi_pcontrol_(MPI_Fint *level) { PMPI_Pcontrol(*level); }

/* Protects a buffer from compiler optimizations; the call itself has this effect. */
void pmpi_f_sync_reg_(void *buffer) { (void)buffer; }

/* An address that does not fit into an INTEGER is an error, but is stored: differences of addresses remain correct. */
void pmpi_address_(void *location, MPI_Fint *address, MPI_Fint *ierr) {
    OPTIONAL(ierr)
    MPI_Aint a = 0;
    *ierr = PMPI_Get_address(buffer_of(location), &a);
    *address = (MPI_Fint)a;
    if (*ierr == MPI_SUCCESS && *address != a)
        *ierr = MPI_ERR_ARG;
}

/* Attributes. Fortran sets integers. In C, a predefined attribute is a pointer to an integer; Fortran has a separate
   key for it, which is the C key plus 1. */

static int predefined(MPI_Fint key) { return (key & ~0xf) == (MPI_TAG_UB & ~0xf) || (key & ~0xf) == (MPI_WIN_BASE & ~0xf); }

static inline int attribute_key(MPI_Fint key) { return predefined(key) && (key & 1) == 0 ? key - 1 : key; }

static MPI_Aint attribute_value(MPI_Fint key, void *value) {
    if (!predefined(key) || (key & 1) == 1 || attribute_key(key) == MPI_WIN_BASE)
        return (MPI_Aint)value;
    return attribute_key(key) == MPI_WIN_SIZE ? *(MPI_Aint *)value : *(int *)value;
}

#define GET_ATTRIBUTE(function, call, type) \
    void function(MPI_Fint *object, MPI_Fint *key, type *value, MPI_Fint *flag, MPI_Fint *ierr) { \
        OPTIONAL(ierr) \
        void *found = NULL; \
        *ierr = call(*object, attribute_key(*key), &found, flag); \
        if (*ierr == MPI_SUCCESS && *flag) \
            *value = (type)attribute_value(*key, found); \
    }
GET_ATTRIBUTE(pmpi_comm_get_attr_, PMPI_Comm_get_attr, MPI_Aint)
GET_ATTRIBUTE(pmpi_type_get_attr_, PMPI_Type_get_attr, MPI_Aint)
GET_ATTRIBUTE(pmpi_win_get_attr_, PMPI_Win_get_attr, MPI_Aint)
GET_ATTRIBUTE(pmpi_attr_get_, PMPI_Attr_get, MPI_Fint)

#define SET_ATTRIBUTE(function, call, type) \
    void function(MPI_Fint *object, MPI_Fint *key, type *value, MPI_Fint *ierr) { \
        OPTIONAL(ierr) \
        *ierr = call(*object, *key, (void *)(MPI_Aint)*value); \
    }
SET_ATTRIBUTE(pmpi_comm_set_attr_, PMPI_Comm_set_attr, MPI_Aint)
SET_ATTRIBUTE(pmpi_type_set_attr_, PMPI_Type_set_attr, MPI_Aint)
SET_ATTRIBUTE(pmpi_win_set_attr_, PMPI_Win_set_attr, MPI_Aint)
SET_ATTRIBUTE(pmpi_attr_put_, PMPI_Attr_put, MPI_Fint)

/* The callbacks of a key, which expect arguments by reference, and its extra state. It is never freed, because C
   does not report when the last attribute of a freed key is deleted. */
typedef void copy_function(MPI_Fint *object, MPI_Fint *key, void *extra, void *in, void *out, MPI_Fint *flag, MPI_Fint *ierr);
typedef void delete_function(MPI_Fint *object, MPI_Fint *key, void *value, void *extra, MPI_Fint *ierr);
struct keyval {
    copy_function *copy;
    delete_function *delete;
    MPI_Aint extra;
};

#define KEYVAL_CALLBACKS(type) \
    static int copy_##type(int object, int key, void *extra, void *in, void *out, int *flag) { \
        struct keyval *k = extra; \
        type state = (type)k->extra, from = (type)(MPI_Aint)in, to = 0; \
        MPI_Fint ierr = MPI_SUCCESS; \
        k->copy(&object, &key, &state, &from, &to, flag, &ierr); \
        if (*flag) \
            *(void **)out = (void *)(MPI_Aint)to; \
        return ierr; \
    } \
    static int delete_##type(int object, int key, void *value, void *extra) { \
        struct keyval *k = extra; \
        type state = (type)k->extra, old = (type)(MPI_Aint)value; \
        MPI_Fint ierr = MPI_SUCCESS; \
        k->delete(&object, &key, &old, &state, &ierr); \
        return ierr; \
    }
KEYVAL_CALLBACKS(MPI_Aint)
KEYVAL_CALLBACKS(MPI_Fint)

#define CREATE_KEYVAL(function, call, type) \
    void function(copy_function *copy, delete_function *delete, MPI_Fint *key, type *extra, MPI_Fint *ierr) { \
        OPTIONAL(ierr) \
        struct keyval *k = malloc(sizeof *k); \
        if (k == NULL) { \
            *ierr = MPI_ERR_NO_MEM; \
            return; \
        } \
        *k = (struct keyval){copy, delete, *extra}; \
        if ((*ierr = call(copy_##type, delete_##type, key, k)) != MPI_SUCCESS) \
            free(k); \
    }
CREATE_KEYVAL(pmpi_comm_create_keyval_, PMPI_Comm_create_keyval, MPI_Aint)
CREATE_KEYVAL(pmpi_type_create_keyval_, PMPI_Type_create_keyval, MPI_Aint)
CREATE_KEYVAL(pmpi_win_create_keyval_, PMPI_Win_create_keyval, MPI_Aint)
CREATE_KEYVAL(pmpi_keyval_create_, PMPI_Keyval_create, MPI_Fint)

#define NULL_CALLBACKS(prefix, type) \
    void prefix##null_copy_fn_(MPI_Fint *object, MPI_Fint *key, type *extra, type *in, type *out, MPI_Fint *flag, MPI_Fint *ierr) { \
        (void)object, (void)key, (void)extra, (void)in, (void)out; \
        *flag = 0, *ierr = MPI_SUCCESS; \
    } \
    void prefix##dup_fn_(MPI_Fint *object, MPI_Fint *key, type *extra, type *in, type *out, MPI_Fint *flag, MPI_Fint *ierr) { \
        (void)object, (void)key, (void)extra; \
        *out = *in, *flag = 1, *ierr = MPI_SUCCESS; \
    } \
    void prefix##null_delete_fn_(MPI_Fint *object, MPI_Fint *key, type *value, type *extra, MPI_Fint *ierr) { \
        (void)object, (void)key, (void)value, (void)extra; \
        *ierr = MPI_SUCCESS; \
    }
NULL_CALLBACKS(pmpi_, MPI_Fint)
NULL_CALLBACKS(pmpi_comm_, MPI_Aint)
NULL_CALLBACKS(pmpi_type_, MPI_Aint)
NULL_CALLBACKS(pmpi_win_, MPI_Aint)

void pmpi_conversion_fn_null_(void) {}

/* The callbacks of a generalized request, freed with the request. */
struct grequest {
    void (*query)(MPI_Aint *extra, MPI_Status *status, MPI_Fint *ierr);
    void (*free)(MPI_Aint *extra, MPI_Fint *ierr);
    void (*cancel)(MPI_Aint *extra, MPI_Fint *complete, MPI_Fint *ierr);
    MPI_Aint extra;
};

static int grequest_query(void *extra, MPI_Status *status) {
    struct grequest *g = extra;
    MPI_Fint ierr = MPI_SUCCESS;
    g->query(&g->extra, status, &ierr);
    return ierr;
}

static int grequest_free(void *extra) {
    struct grequest *g = extra;
    MPI_Fint ierr = MPI_SUCCESS;
    g->free(&g->extra, &ierr);
    free(g);
    return ierr;
}

static int grequest_cancel(void *extra, int complete) {
    struct grequest *g = extra;
    MPI_Fint ierr = MPI_SUCCESS;
    g->cancel(&g->extra, &complete, &ierr);
    return ierr;
}

void pmpi_grequest_start_(void (*query)(MPI_Aint *, MPI_Status *, MPI_Fint *), void (*release)(MPI_Aint *, MPI_Fint *),
                          void (*cancel)(MPI_Aint *, MPI_Fint *, MPI_Fint *), MPI_Aint *extra, MPI_Fint *request, MPI_Fint *ierr) {
    OPTIONAL(ierr)
    struct grequest *g = malloc(sizeof *g);
    if (g == NULL) {
        *ierr = MPI_ERR_NO_MEM;
        return;
    }
    *g = (struct grequest){query, release, cancel, *extra};
    if ((*ierr = PMPI_Grequest_start(grequest_query, grequest_free, grequest_cancel, g, request)) != MPI_SUCCESS)
        free(g);
}

/* Strings with a length argument. In C, it includes the null character. */

void pmpi_info_get_(MPI_Fint *info, char *key, MPI_Fint *valuelen, char *value, MPI_Fint *flag, MPI_Fint *ierr, size_t key_length,
                    size_t value_length) {
    OPTIONAL(ierr)
    char k[key_length + 1], v[value_length + 1];
    int room = *valuelen < 0 || (size_t)*valuelen < value_length ? *valuelen : (int)value_length;
    *ierr = PMPI_Info_get(*info, word_of(k, key, key_length), room, v, flag);
    if (*ierr == MPI_SUCCESS && *flag)
        set_string(value, value_length, v);
}

void pmpi_info_get_string_(MPI_Fint *info, char *key, MPI_Fint *buflen, char *value, MPI_Fint *flag, MPI_Fint *ierr, size_t key_length,
                           size_t value_length) {
    OPTIONAL(ierr)
    char k[key_length + 1], v[value_length + 1];
    int length = *buflen <= 0 ? 0 : (size_t)*buflen < value_length ? *buflen + 1 : (int)value_length + 1, room = length;
    *ierr = PMPI_Info_get_string(*info, word_of(k, key, key_length), &length, v, flag);
    if (*ierr != MPI_SUCCESS || !*flag)
        return;
    if (room > 0)
        set_string(value, value_length, v);
    *buflen = length - 1;
}

void pmpi_session_get_nth_pset_(MPI_Fint *session, MPI_Fint *info, MPI_Fint *n, MPI_Fint *pset_len, char *name, MPI_Fint *ierr,
                                size_t name_length) {
    OPTIONAL(ierr)
    char v[name_length + 1];
    int length = *pset_len <= 0 ? 0 : (size_t)*pset_len < name_length ? *pset_len + 1 : (int)name_length + 1, room = length;
    *ierr = PMPI_Session_get_nth_pset(*session, *info, *n, &length, v);
    if (*ierr != MPI_SUCCESS)
        return;
    if (room > 0)
        set_string(name, name_length, v);
    *pset_len = length - 1;
}

void pmpi_comm_spawn_(char *command, char *argv, MPI_Fint *maxprocs, MPI_Fint *info, MPI_Fint *root, MPI_Fint *comm, MPI_Fint *intercomm,
                      MPI_Fint *errcodes, MPI_Fint *ierr, size_t command_length, size_t argv_length) {
    OPTIONAL(ierr)
    char name[command_length + 1], **list = MPI_ARGV_NULL;
    if (argv != &mpiprivc_.argv_null && argv != __mpi_f08_link_constants_MOD_mpi_argv_null &&
        (list = arguments_of(argv, argv_length, 1)) == NULL) {
        *ierr = MPI_ERR_NO_MEM;
        return;
    }
    *ierr = PMPI_Comm_spawn(string_of(name, command, command_length), list, *maxprocs, *info, *root, *comm, intercomm, errcodes_of(errcodes));
    free(list);
}

void pmpi_comm_spawn_multiple_(MPI_Fint *count, char *commands, char *argvs, MPI_Fint *maxprocs, MPI_Fint *infos, MPI_Fint *root,
                               MPI_Fint *comm, MPI_Fint *intercomm, MPI_Fint *errcodes, MPI_Fint *ierr, size_t command_length,
                               size_t argv_length) {
    OPTIONAL(ierr)
    size_t n = *count > 0 ? (size_t)*count : 0;
    char **names = malloc((n + 1) * sizeof *names + n * (command_length + 1)), ***lists = calloc(n + 1, sizeof *lists);
    int failed = names == NULL || lists == NULL, listed = argvs != &mpiprivc_.argvs_null && argvs != __mpi_f08_link_constants_MOD_mpi_argvs_null;
    for (size_t i = 0; i < n && !failed; i++) {
        names[i] = string_of((char *)(names + n + 1) + i * (command_length + 1), commands + i * command_length, command_length);
        failed = listed && (lists[i] = arguments_of(argvs + i * argv_length, argv_length, n)) == NULL;
    }
    *ierr = MPI_ERR_NO_MEM;
    if (!failed)
        *ierr = PMPI_Comm_spawn_multiple(*count, names, listed ? lists : MPI_ARGVS_NULL, maxprocs, infos, *root, *comm, intercomm,
                                         errcodes_of(errcodes));
    for (size_t i = 0; lists != NULL && i < n; i++)
        free(lists[i]);
    free(lists);
    free(names);
}

/* User-defined data representations need callbacks for files, which do not exist yet: the C function reports the
   error. */
void pmpi_register_datarep_(char *datarep, void *read, void *write, void *extent, MPI_Aint *extra, MPI_Fint *ierr, size_t length) {
    OPTIONAL(ierr)
    char name[length + 1];
    (void)read, (void)write, (void)extent, (void)extra;
    *ierr = PMPI_Register_datarep(string_of(name, datarep, length), NULL, NULL, NULL, NULL);
}

/* A buffer of assumed rank, as passed by gfortran 9 and later to a procedure without BIND(C). Strides are in spans. */
struct descriptor {
    void *base;
    size_t offset, element;
    int version;
    signed char rank, type;
    short attribute;
    intptr_t span;
    struct { intptr_t stride, lower, upper; } dimension[];
};

/* Reports whether the elements are one block. If not, it raises an error, even if the caller does not pass ierr. */
static int contiguous(struct descriptor *d, MPI_Fint *ierr) {
    intptr_t elements = 1;
    int block = d->rank == 0 || d->span == (intptr_t)d->element;
    for (int i = 0; i < d->rank && block; i++) {
        intptr_t extent = d->dimension[i].upper - d->dimension[i].lower + 1;
        block = extent <= 1 || d->dimension[i].stride == elements;
        elements *= extent;
    }
    if (block)
        return 1;
    *ierr = PMPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_BUFFER);
    if (*ierr == MPI_SUCCESS)
        *ierr = MPI_ERR_BUFFER;
    return 0;
}

void pmpir_f_sync_reg_f08ts_(struct descriptor *buffer) { (void)buffer; }
WEAK(mpi_f_sync_reg_f08ts_, pmpir_f_sync_reg_f08ts_)
NAMES_F08(f_sync_reg)

/* Comparisons, conversions and callbacks of MPICH's modules. In memory, handles of mpi_f08 and mpi are integers. */
#define COMPARE_AS(name) \
    MPI_Fint name##eq(MPI_Fint *a, MPI_Fint *b) { return *a == *b; } \
    MPI_Fint name##neq(MPI_Fint *a, MPI_Fint *b) { return *a != *b; }
#define COMPARE_F08(handle) \
    COMPARE_AS(__mpi_f08_types_MOD_mpi_##handle##_) \
    extern __typeof__(__mpi_f08_types_MOD_mpi_##handle##_eq) \
        __mpi_f08_types_MOD_mpi_##handle##_f08_eq_f __attribute__((alias("__mpi_f08_types_MOD_mpi_" #handle "_eq"))), \
        __mpi_f08_types_MOD_mpi_##handle##_f_eq_f08 __attribute__((alias("__mpi_f08_types_MOD_mpi_" #handle "_eq"))), \
        __mpi_f08_types_MOD_mpi_##handle##_f08_neq_f __attribute__((alias("__mpi_f08_types_MOD_mpi_" #handle "_neq"))), \
        __mpi_f08_types_MOD_mpi_##handle##_f_neq_f08 __attribute__((alias("__mpi_f08_types_MOD_mpi_" #handle "_neq")));
#define CONVERT(handle) \
    MPI_Fint __mpi_f08_types_MOD_mpi_##handle##_c2f(MPI_Fint c) { return c; } \
    MPI_Fint __mpi_f08_types_MOD_mpi_##handle##_f2c(MPI_Fint f) { return f; }
#define HANDLE(handle) COMPARE_F08(handle) CONVERT(handle) COMPARE_AS(__mpi_constants_MOD_##handle)
HANDLE(comm)
HANDLE(datatype)
HANDLE(errhandler)
HANDLE(group)
HANDLE(info)
HANDLE(message)
HANDLE(op)
HANDLE(request)
HANDLE(win)
COMPARE_F08(session)
CONVERT(session)
COMPARE_F08(file)
COMPARE_AS(__mpi_constants_MOD_file)

/* A status has the same fields in C, mpi and mpi_f08. */
#define CONVERT_STATUS(name) \
    void __mpi_f08_types_MOD_mpi_status_##name(const MPI_F08_status *a, MPI_F08_status *b, MPI_Fint *ierr) { \
        memcpy(b, a, sizeof *b); \
        if (ierr != NULL) \
            *ierr = MPI_SUCCESS; \
    }
CONVERT_STATUS(f082f)
CONVERT_STATUS(f2f08)
#define ASSIGN_STATUS(name, to, from) \
    void __mpi_f08_types_MOD_mpi_status_##name(to *a, const from *b) { memcpy(a, b, sizeof *a); }
ASSIGN_STATUS(c_assign_f08, MPI_Status, MPI_F08_status)
ASSIGN_STATUS(f08_assign_c, MPI_F08_status, MPI_Status)

#define CALLBACKS(object) \
    NAME(object##_null_copy_fn, __mpi_f08_callbacks_MOD_mpi_##object##_null_copy_fn, ) \
    NAME(object##_dup_fn, __mpi_f08_callbacks_MOD_mpi_##object##_dup_fn, ) \
    NAME(object##_null_delete_fn, __mpi_f08_callbacks_MOD_mpi_##object##_null_delete_fn, )
CALLBACKS(comm)
CALLBACKS(type)
CALLBACKS(win)

/* MPI_SIZEOF of MPICH's modules, for scalars and arrays (v). The value of the argument is not used. */
#define SIZEOF_BYTES(name, bytes) \
    void name(const void *x, MPI_Fint *size, MPI_Fint *ierr) { \
        (void)x; \
        *size = bytes; \
        if (ierr != NULL) \
            *ierr = MPI_SUCCESS; \
    }
#define SIZEOF_F90(type, bytes) \
    SIZEOF_BYTES(__mpi_sizeofs_MOD_mpi_sizeof_##type, bytes) SIZEOF_BYTES(__mpi_sizeofs_MOD_mpi_sizeof_##type##v, bytes)
SIZEOF_F90(ch, 1)
SIZEOF_F90(l, 4)
SIZEOF_F90(i, 4)
SIZEOF_F90(i1, 1)
SIZEOF_F90(i2, 2)
SIZEOF_F90(i8, 8)
SIZEOF_F90(r, 4)
SIZEOF_F90(d, 8)
SIZEOF_F90(cx, 8)
#define SIZEOF_F08(type, bytes) SIZEOF_BYTES(__mpi_f08_types_MOD_mpi_sizeof_##type, bytes)
SIZEOF_F08(character, 1)
SIZEOF_F08(logical, 4)
SIZEOF_F08(xint8, 1)
SIZEOF_F08(xint16, 2)
SIZEOF_F08(xint32, 4)
SIZEOF_F08(xint64, 8)
SIZEOF_F08(xreal32, 4)
SIZEOF_F08(xreal64, 8)
SIZEOF_F08(xreal128, 16)
SIZEOF_F08(xcomplex32, 8)
SIZEOF_F08(xcomplex64, 16)
SIZEOF_F08(xcomplex128, 32)
