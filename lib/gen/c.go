package main

import (
	"fmt"
	"slices"
	"strings"
)

// class identifies the member of a zrl_arg through which a value is passed.
type class string

const (
	integer class = "i"
	pointer class = "p"
	double  class = "d"
)

// cType returns the C type for a name in the tables, and the class of its values. The type is empty if the name does
// not exist in the ABI.
func (a *abi) cType(name string) (string, class) {
	switch name {
	case "int", "logical", "index":
		return "int", integer
	case "double":
		return "double", double
	case "char":
		return "char", ""
	case "void", "choice", "attr", "state":
		return "void", ""
	}
	if tag, ok := a.handles[name]; ok {
		if tag != "" {
			return "MPI_" + name, pointer
		}
		return "MPI_" + name, integer
	}
	for _, t := range a.integers {
		if t[0] == name {
			return "MPI_" + name, integer
		}
	}
	if name == "Status" || strings.HasSuffix(name, "_function") || strings.HasSuffix(name, "_function_c") {
		return "MPI_" + name, ""
	}
	return "", ""
}

// classOf returns the class of a parameter or result, or an error if there is no such type.
func (a *abi) classOf(spec typeSpec) (class, error) {
	c, cl := a.cType(spec.base)
	switch {
	case c == "":
		return "", fmt.Errorf("the ABI %s has no type %q", a.name, spec.base)
	case spec.pointers > 0 || len(spec.arrays) > 0:
		return pointer, nil
	case cl == "":
		return "", fmt.Errorf("%q is not the type of a value", spec.base)
	}
	return cl, nil
}

// declare returns a declaration of name, or only the type if name is empty.
func (a *abi) declare(spec typeSpec, name string) string {
	text, _ := a.cType(spec.base)
	if spec.constant {
		text = "const " + text
	}
	text += " " + strings.Repeat("*", spec.pointers) + name
	for _, size := range spec.arrays {
		text += "[" + size + "]"
	}
	return strings.TrimSuffix(text, " ")
}

// prototype returns the declaration of a function with the given prefix, MPI_ or PMPI_.
func (a *abi) prototype(f function, prefix string) string {
	result := "int"
	if f.result != "" {
		result, _ = a.cType(f.result)
	}
	params := make([]string, len(f.params))
	for i, p := range f.params {
		if strings.HasSuffix(p.name, "weights") { // may be MPI_UNWEIGHTED, for which gcc warns about an array
			p.typ.arrays, p.typ.pointers = nil, 1
		}
		if params[i] = "..."; p.name != "" {
			params[i] = a.declare(p.typ, p.name)
		}
	}
	if len(params) == 0 {
		params = []string{"void"}
	}
	return fmt.Sprintf("%s %s%s(%s)", result, prefix, f.name, strings.Join(params, ", "))
}

// maxArgs is the maximum number of arguments of zrl_call.
const maxArgs = 16

// checkTable returns an error if the table contains anything that the ABI cannot express.
func (a *abi) checkTable(table []function) error {
	for _, f := range table {
		if !f.isInABI(a.name) {
			continue
		}
		if len(f.params) > maxArgs {
			return fmt.Errorf("%s: %d parameters, but zrl_call takes at most %d", f.name, len(f.params), maxArgs)
		}
		for _, p := range f.params {
			if _, err := a.classOf(p.typ); err != nil && p.name != "" {
				return fmt.Errorf("%s: parameter %s: %w", f.name, p.name, err)
			}
		}
		if f.result != "" {
			if _, err := a.classOf(typeSpec{base: f.result}); err != nil {
				return fmt.Errorf("%s: result: %w", f.name, err)
			}
		}
	}
	return nil
}

// inlineResults maps functions to expressions that need no call into the library. Such a call takes longer than reading
// the clock, which programs that time themselves do for every message.
var inlineResults = map[string]string{"Wtime": "zrl_time()", "Wtick": "1e-9"}

// fastCalls maps functions that C code can often finish by itself to the functions in lib/c/fast.h, with their arguments
// other than the block. Handles are marked with #.
var fastCalls = map[string]string{
	"Send":      "send(buf, count, #datatype, dest, tag, #comm)",
	"Recv":      "recv(buf, count, #datatype, source, tag, #comm, status)",
	"Barrier":   "barrier(#comm)",
	"Bcast":     "bcast(buffer, count, #datatype, root, #comm)",
	"Reduce":    "reduce(sendbuf, recvbuf, count, #datatype, #op, root, #comm)",
	"Allreduce": "allreduce(sendbuf, recvbuf, count, #datatype, #op, #comm)",
	"Allgather": "blocks(ZRL_ALLGATHER, sendbuf, sendcount, #sendtype, recvbuf, recvcount, #recvtype, #comm)",
	"Alltoall":  "blocks(ZRL_ALLTOALL, sendbuf, sendcount, #sendtype, recvbuf, recvcount, #recvtype, #comm)",
}

// fastCall returns the statement that tries to finish a call in C, or nothing.
func (a *abi) fastCall(f function) string {
	call := fastCalls[strings.TrimSuffix(f.name, "_c")]
	if call == "" {
		return ""
	}
	cast := "(uint64_t)(uintptr_t)"
	if a.handles["Comm"] == "" {
		cast = "(uint32_t)"
	}
	call = strings.Replace(strings.ReplaceAll(call, "#", cast), "(", "(lease, ", 1)
	return fmt.Sprintf("    if (zrl_fast_%s)\n        return MPI_SUCCESS;\n", call)
}

// receiveFast returns the function that receives a message in C and writes its status.
func (a *abi) receiveFast() string {
	count := "status->MPI_internal[0] = (int)length, status->MPI_internal[1] = 0"
	if a.name == mpich {
		count = "status->count_lo = (int)length, status->count_hi_and_cancelled = 0"
	}
	return fmt.Sprintf(`
static int zrl_fast_recv(zrl_block *b, void *buf, int64_t count, uint64_t type, int source, int tag, uint64_t comm,
                         MPI_Status *status) {
    uint64_t length;
    if (tag == MPI_ANY_TAG)
        tag = -1;
    else if (tag < 0)
        return 0;
    if (!zrl_fast_take(b, buf, count, type, source, &tag, comm, &length))
        return 0;
    if (status != NULL && status != MPI_STATUS_IGNORE)
        status->MPI_SOURCE = source, status->MPI_TAG = tag, %s;
    return 1;
}
`, count)
}

// shims returns the C source of the functions of an ABI. Each function packs its arguments and calls zrl_call, except
// for the functions in inlineResults, and for calls that C code can finish (fastCalls).
func (a *abi) shims(table []function) string {
	var b strings.Builder
	fmt.Fprintf(&b, "/* The functions of the ABI %s, %s from functions.txt. */\n", a.name, generatedBy)
	if a.name == standard {
		b.WriteString("#define ZRLMPI_INLINE /* defines symbols */\n")
	}
	b.WriteString("#include \"mpi.h\"\n#include \"zrlmpi.h\"\n#include \"fast.h\"\n\nstatic zrl_block *lease;\n\n")
	fmt.Fprintf(&b, "__attribute__((constructor)) static void load(void) { lease = zrl_load(ZRL_%s); }\n",
		strings.ToUpper(string(a.name)))
	b.WriteString(a.receiveFast())
	if a.name == mpich {
		b.WriteString(mpichSymbols)
	}
	b.WriteString(a.conversionSymbols(table))
	for call, f := range table {
		if !f.isInABI(a.name) {
			continue
		}
		fmt.Fprintf(&b, "\n%s {\n", a.prototype(f, "PMPI_"))
		if answer := inlineResults[f.name]; answer != "" {
			fmt.Fprintf(&b, "    return %s;\n", answer)
			b.WriteString(endWeak(f))
			continue
		}
		b.WriteString(a.fastCall(f))
		fmt.Fprintf(&b, "    zrl_arg a[%d];\n", maxArgs)
		for i, p := range f.params {
			if p.name == "" {
				continue // variadic arguments have no meaning
			}
			if cl, _ := a.classOf(p.typ); cl == pointer {
				fmt.Fprintf(&b, "    a[%d].p = (void *)%s;\n", i, p.name)
			} else {
				fmt.Fprintf(&b, "    a[%d].%s = %s;\n", i, cl, p.name)
			}
		}
		if f.result == "" {
			fmt.Fprintf(&b, "    return zrl_call(%d, a);\n", call)
		} else {
			cl, _ := a.classOf(typeSpec{base: f.result})
			result, _ := a.cType(f.result)
			fmt.Fprintf(&b, "    zrl_call(%d, a);\n    return (%s)a[0].%s;\n", call, result, cl)
		}
		b.WriteString(endWeak(f))
	}
	return b.String()
}

// endWeak ends a function, and makes its MPI_ name a weak symbol so that a profiling library can replace it.
func endWeak(f function) string {
	return fmt.Sprintf("}\n#pragma weak MPI_%[1]s = PMPI_%[1]s\n", f.name)
}

// mpichSymbols are the symbols, other than functions, that binaries for MPICH import. The two pointers are
// compared and passed on, but never dereferenced.
const mpichSymbols = `
#undef MPI_UNWEIGHTED
#undef MPI_WEIGHTS_EMPTY
#undef MPI_T_PVAR_ALL_HANDLES
int *const MPI_UNWEIGHTED = (int *)10;
int *const MPI_WEIGHTS_EMPTY = (int *)11;
MPI_T_pvar_handle const MPI_T_PVAR_ALL_HANDLES = (MPI_T_pvar_handle)1;

/* The Fortran library sets them. */
MPI_Fint *MPI_F_STATUS_IGNORE, *MPI_F_STATUSES_IGNORE;

MPI_F08_status MPIR_F08_MPI_STATUS_IGNORE_OBJ, MPIR_F08_MPI_STATUSES_IGNORE_OBJ[1];
MPI_F08_status *MPI_F08_STATUS_IGNORE = &MPIR_F08_MPI_STATUS_IGNORE_OBJ;
MPI_F08_status *MPI_F08_STATUSES_IGNORE = MPIR_F08_MPI_STATUSES_IGNORE_OBJ;
int MPIR_F08_MPI_IN_PLACE, MPIR_F08_MPI_BOTTOM;

int MPIR_Dup_fn(MPI_Comm comm, int keyval, void *extra_state, void *in, void *out, int *flag) {
    (void)comm, (void)keyval, (void)extra_state;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

/* Extensions of MPICH that the standard has had since, or of which the answer is no. */
int PMPIX_Delete_error_class(int errorclass) { return PMPI_Remove_error_class(errorclass); }
int PMPIX_Delete_error_code(int errorcode) { return PMPI_Remove_error_code(errorcode); }
int PMPIX_Delete_error_string(int errorcode) { return PMPI_Remove_error_string(errorcode); }
int PMPIX_Query_cuda_support(void) { return 0; }
int PMPIX_Query_hip_support(void) { return 0; }
int PMPIX_Query_ze_support(void) { return 0; }
int PMPIX_GPU_query_support(int type, int *supported) {
    (void)type;
    *supported = 0;
    return MPI_SUCCESS;
}
#pragma weak MPIX_Delete_error_class = PMPIX_Delete_error_class
#pragma weak MPIX_Delete_error_code = PMPIX_Delete_error_code
#pragma weak MPIX_Delete_error_string = PMPIX_Delete_error_string
#pragma weak MPIX_Query_cuda_support = PMPIX_Query_cuda_support
#pragma weak MPIX_Query_hip_support = PMPIX_Query_hip_support
#pragma weak MPIX_Query_ze_support = PMPIX_Query_ze_support
#pragma weak MPIX_GPU_query_support = PMPIX_GPU_query_support
`

// header returns mpi.h.
func (a *abi) header(table []function) string {
	var b strings.Builder
	fmt.Fprintf(&b, "/* MPI for C and C++, for the ABI %s. This file is %s. */\n", a.name, generatedBy)
	b.WriteString("#ifndef MPI_INCLUDED\n#define MPI_INCLUDED\n\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern " +
		"\"C\" {\n#endif\n\n")
	for _, t := range a.integers {
		fmt.Fprintf(&b, "typedef %s MPI_%s;\n", t[1], t[0])
	}
	b.WriteString("\n")
	for _, name := range a.handleNames {
		if tag := a.handles[name]; tag != "" {
			fmt.Fprintf(&b, "typedef struct %s *MPI_%s;\n", tag, name)
		} else {
			fmt.Fprintf(&b, "typedef int MPI_%s;\n", name)
		}
	}
	b.WriteString("\ntypedef struct MPI_Status {\n")
	for _, field := range a.status {
		fmt.Fprintf(&b, "    int %s;\n", field)
	}
	b.WriteString("} MPI_Status;\n")
	b.WriteString(callbackTypes)
	for _, c := range a.constants {
		switch {
		case c.typ.base == "int" && c.typ.pointers == 0 && c.value < 0:
			fmt.Fprintf(&b, "#define MPI_%s (%s)\n", c.name, c.text)
		case c.typ.base == "int" && c.typ.pointers == 0:
			fmt.Fprintf(&b, "#define MPI_%s %s\n", c.name, c.text)
		default:
			fmt.Fprintf(&b, "#define MPI_%s ((%s)%s)\n", c.name, a.declare(c.typ, ""), c.text)
		}
	}
	if a.name == mpich {
		b.WriteString(mpichDeclarations)
	} else {
		b.WriteString(standardDeclarations)
	}
	for _, prefix := range []string{"MPI_", "PMPI_"} {
		b.WriteString("\n")
		for _, f := range table {
			if f.isInABI(a.name) {
				fmt.Fprintf(&b, "%s;\n", a.prototype(f, prefix))
			}
		}
	}
	for _, prefix := range []string{"MPI_", "PMPI_"} {
		b.WriteString(a.declareConversions(table, prefix))
	}
	b.WriteString("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n")
	return b.String()
}

// A conversion is a function between C and Fortran (MPI 5.0, section 20.4). An ABI has symbols for only a few
// of them, but C programs expect all of them.
type conversion struct{ name, result, param, value string }

// conversions returns the conversions of all handles that the table's functions convert to and from ints, except for
// those that are pointers in MPICH's ABI.
func (a *abi) conversions(table []function, prefix string) (list []conversion) {
	for _, name := range a.handleNames {
		short, of := strings.Replace(name, "Datatype", "Type", 1), "MPI_"+name
		to, from := fmt.Sprintf("%s%s_toint(handle)", prefix, short), fmt.Sprintf("%s%s_fromint(handle)", prefix, short)
		if !slices.ContainsFunc(table, func(f function) bool { return f.name == short+"_toint" }) ||
			a.name == mpich && a.handles[name] != "" {
			continue
		}
		list = append(list, conversion{prefix + short + "_c2f", "MPI_Fint", of, to},
			conversion{prefix + short + "_f2c", of, "MPI_Fint", from})
	}
	return list
}

// declareConversions returns the declarations of conversions for mpi.h. For MPICH, conversions of handles are
// macros. For the standard's ABI, they are inline functions, because programs take the addresses of some.
// Neither form imports a symbol. The library itself defines the inline functions as symbols.
func (a *abi) declareConversions(table []function, prefix string) string {
	var b strings.Builder
	b.WriteString("\n")
	for _, c := range a.conversions(table, prefix) {
		if a.name == mpich {
			fmt.Fprintf(&b, "#define %s(handle) ((%s)(handle))\n", c.name, c.result)
		} else {
			fmt.Fprintf(&b, "ZRLMPI_INLINE %s %s(%s handle) { return %s; }\n", c.result, c.name, c.param, c.value)
		}
	}
	for _, c := range statusConversions {
		if a.name == mpich {
			fmt.Fprintf(&b, "%s;\n", c.prototype(prefix))
		} else {
			fmt.Fprintf(&b, "ZRLMPI_INLINE %s { return %s; }\n", c.prototype(prefix), c.expression())
		}
	}
	return b.String()
}

// conversionSymbols returns code that defines conversions as symbols, for programs built with another header and for
// programs that look up conversions with the loader.
func (a *abi) conversionSymbols(table []function) string {
	var b strings.Builder
	for _, c := range statusConversions {
		if a.name == mpich {
			fmt.Fprintf(&b, "\n%s {\n    return %s;\n%s", c.prototype("PMPI_"), c.expression(),
				endWeak(function{name: "Status_" + c.name}))
		} else {
			fmt.Fprintf(&b, "#pragma weak MPI_Status_%s\n", c.name)
		}
	}
	if a.name == standard {
		for _, c := range a.conversions(table, "MPI_") {
			fmt.Fprintf(&b, "#pragma weak %s\n", c.name)
		}
	}
	return b.String()
}

// statusConversion is a function that converts a status between C and the two Fortran forms. All three forms
// have the same fields.
type statusConversion struct{ name, from, to, ignored string }

var statusConversions = []statusConversion{
	{"c2f", "MPI_Status", "MPI_Fint", "MPI_STATUS_IGNORE"},
	{"c2f08", "MPI_Status", "MPI_F08_status", "MPI_STATUS_IGNORE"},
	{"f2c", "MPI_Fint", "MPI_Status", "MPI_F_STATUS_IGNORE"},
	{"f2f08", "MPI_Fint", "MPI_F08_status", "MPI_F_STATUS_IGNORE"},
	{"f082c", "MPI_F08_status", "MPI_Status", "MPI_F08_STATUS_IGNORE"},
	{"f082f", "MPI_F08_status", "MPI_Fint", "MPI_F08_STATUS_IGNORE"},
}

func (c *statusConversion) prototype(prefix string) string {
	return fmt.Sprintf("int %sStatus_%s(const %s *from, %s *to)", prefix, c.name, c.from, c.to)
}

func (c *statusConversion) expression() string {
	return fmt.Sprintf("from == %s || to == 0 ? MPI_ERR_ARG : (__builtin_memcpy(to, from, sizeof(MPI_Status)), "+
		"MPI_SUCCESS)", c.ignored)
}

// callbackTypes declares the types for functions of the program that the library calls.
const callbackTypes = `
typedef void(MPI_User_function)(void *in, void *inout, int *count, MPI_Datatype *datatype);
typedef void(MPI_User_function_c)(void *in, void *inout, MPI_Count *count, MPI_Datatype *datatype);

typedef int(MPI_Comm_copy_attr_function)(MPI_Comm, int keyval, void *extra, void *in, void *out, int *flag);
typedef int(MPI_Comm_delete_attr_function)(MPI_Comm, int keyval, void *value, void *extra);
typedef int(MPI_Type_copy_attr_function)(MPI_Datatype, int keyval, void *extra, void *in, void *out, int *flag);
typedef int(MPI_Type_delete_attr_function)(MPI_Datatype, int keyval, void *value, void *extra);
typedef int(MPI_Win_copy_attr_function)(MPI_Win, int keyval, void *extra, void *in, void *out, int *flag);
typedef int(MPI_Win_delete_attr_function)(MPI_Win, int keyval, void *value, void *extra);
typedef MPI_Comm_copy_attr_function MPI_Copy_function;
typedef MPI_Comm_delete_attr_function MPI_Delete_function;

typedef void(MPI_Comm_errhandler_function)(MPI_Comm *, int *code, ...);
typedef void(MPI_File_errhandler_function)(MPI_File *, int *code, ...);
typedef void(MPI_Session_errhandler_function)(MPI_Session *, int *code, ...);
typedef void(MPI_Win_errhandler_function)(MPI_Win *, int *code, ...);
typedef MPI_Comm_errhandler_function MPI_Comm_errhandler_fn, MPI_Handler_function;
typedef MPI_File_errhandler_function MPI_File_errhandler_fn;
typedef MPI_Session_errhandler_function MPI_Session_errhandler_fn;
typedef MPI_Win_errhandler_function MPI_Win_errhandler_fn;

typedef int(MPI_Grequest_query_function)(void *extra, MPI_Status *);
typedef int(MPI_Grequest_free_function)(void *extra);
typedef int(MPI_Grequest_cancel_function)(void *extra, int complete);

typedef int(MPI_Datarep_extent_function)(MPI_Datatype, MPI_Aint *extent, void *extra);
typedef int(MPI_Datarep_conversion_function)(void *user, MPI_Datatype, int count, void *file, MPI_Offset position, void *extra);
typedef int(MPI_Datarep_conversion_function_c)(void *user, MPI_Datatype, MPI_Count count, void *file, MPI_Offset position, void *extra);

typedef void(MPI_T_event_cb_function)(MPI_T_event_instance, MPI_T_event_registration, MPI_T_cb_safety, void *data);
typedef void(MPI_T_event_free_cb_function)(MPI_T_event_registration, MPI_T_cb_safety, void *data);
typedef void(MPI_T_event_dropped_cb_function)(MPI_Count, MPI_T_event_registration, int source, MPI_T_cb_safety, void *data);

`

// standardDeclarations ends mpi.h of the standard's ABI. That ABI has no Fortran binding, and therefore no address that
// denotes an ignored Fortran status.
const standardDeclarations = `
#ifndef ZRLMPI_INLINE
#define ZRLMPI_INLINE static __inline__
#endif

typedef struct {
    MPI_Fint MPI_SOURCE, MPI_TAG, MPI_ERROR, MPI_internal[5];
} MPI_F08_status;

#define MPI_F_STATUS_IGNORE ((MPI_Fint *)0)
#define MPI_F_STATUSES_IGNORE ((MPI_Fint *)0)
#define MPI_F08_STATUS_IGNORE ((MPI_F08_status *)0)
#define MPI_F08_STATUSES_IGNORE ((MPI_F08_status *)0)
`

const mpichDeclarations = `
typedef struct {
    MPI_Fint count_lo, count_hi_and_cancelled, MPI_SOURCE, MPI_TAG, MPI_ERROR;
} MPI_F08_status;

extern MPI_Fint *MPI_F_STATUS_IGNORE, *MPI_F_STATUSES_IGNORE;
extern MPI_F08_status *MPI_F08_STATUS_IGNORE, *MPI_F08_STATUSES_IGNORE;

int MPIR_Dup_fn(MPI_Comm, int keyval, void *extra, void *in, void *out, int *flag);

`
