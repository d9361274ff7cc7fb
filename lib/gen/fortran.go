package main

import (
	"fmt"
	"slices"
	"strings"
)

// handWritten lists the functions whose Fortran procedures are written by hand, in lib/c/fortran.h.
var handWritten = []string{
	"Address", "Attr_get", "Attr_put", "Comm_create_keyval", "Comm_get_attr", "Comm_set_attr", "Comm_spawn",
	"Comm_spawn_multiple", "Grequest_start", "Info_create_env", "Info_get", "Info_get_string", "Init", "Init_thread",
	"Keyval_create", "Pcontrol",
	"Register_datarep", "Session_get_nth_pset", "Type_create_keyval", "Type_get_attr", "Type_set_attr",
	"Win_create_keyval",
	"Win_get_attr", "Win_set_attr",
}

// fortranOnly lists the procedures without a C function, which are also written in lib/c/fortran.h.
var fortranOnly = []string{
	"F_sync_reg", "NULL_COPY_FN", "DUP_FN", "NULL_DELETE_FN", "COMM_NULL_COPY_FN", "COMM_DUP_FN", "COMM_NULL_DELETE_FN",
	"TYPE_NULL_COPY_FN", "TYPE_DUP_FN", "TYPE_NULL_DELETE_FN", "WIN_NULL_COPY_FN", "WIN_DUP_FN", "WIN_NULL_DELETE_FN",
	"CONVERSION_FN_NULL",
}

// inFortran reports whether a function exists in Fortran. Conversions of handles and the tool interface do not.
// Functions with large counts exist only in module mpi_f08, under the name without the suffix.
func inFortran(f function) bool {
	for _, suffix := range []string{"datarep_c", "_toint", "_fromint", "_c2f", "_f2c"} {
		if strings.HasSuffix(f.name, suffix) {
			return false
		}
	}
	return f.isInABI(mpich) && !strings.HasPrefix(f.name, "T_") && !strings.HasPrefix(f.name, "Abi_")
}

// largeCountName returns the Fortran name of a function with large counts, and whether f is such a function.
func largeCountName(f function) (string, bool) { return strings.CutSuffix(f.name, "_c") }

// inF08 reports whether a function exists in module mpi_f08.
func inF08(f function) bool {
	return inFortran(f) && f.abi == "" && !strings.HasPrefix(f.name, "Attr_") && !strings.HasPrefix(f.name, "Keyval_")
}

// fortranProcedures returns the C names of all procedures that Fortran can call.
func fortranProcedures(table []function) []string {
	var names []string
	for _, f := range table {
		if _, large := largeCountName(f); inFortran(f) && !large {
			names = append(names, f.name)
		}
	}
	return append(names, fortranOnly...)
}

// fortranC returns the source of the Fortran library for the MPICH ABI.
func (a *abi) fortranC(table []function) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "/* MPI for Fortran, %s from functions.txt. */\n#include \"fortran.h\"\n", generatedBy)
	for _, f := range table {
		if !inFortran(f) || slices.Contains(handWritten, f.name) {
			continue
		}
		text, err := a.fortranShim(f, false)
		if err != nil {
			return "", fmt.Errorf("%s in Fortran: %w", f.name, err)
		}
		b.WriteString(text)
	}
	b.WriteString("\n")
	for _, name := range fortranOnly {
		fmt.Fprintf(&b, "#undef MPI_%s\n", name) // it is a macro in mpi.h
	}
	for _, name := range fortranProcedures(table) {
		fmt.Fprintf(&b, "NAMES(%s, %s)\n", strings.ToLower(name), strings.ToUpper(name))
	}
	for _, f := range table {
		if !inF08(f) {
			continue
		}
		if returnsBuffer(f) {
			text, err := a.fortranShim(f, true)
			if err != nil {
				return "", err
			}
			b.WriteString(text)
		} else if name, large := largeCountName(f); large {
			fmt.Fprintf(&b, "NAMES_F08_LARGE(%s)\n", strings.ToLower(name))
		} else {
			fmt.Fprintf(&b, "NAMES_F08(%s)\n", strings.ToLower(name))
		}
		if slices.ContainsFunc(f.params, isBuffer) && !slices.Contains(handWritten, f.name) {
			text, err := a.descriptorShim(f)
			if err != nil {
				return "", err
			}
			b.WriteString(text)
		}
	}
	return b.String(), nil
}

// returnsBuffer reports whether a function returns an address. Only in module mpi_f08 can a variable hold that
// address; in mpif.h and module mpi, the argument is not used (MPI 4.1, 3.6.1).
func returnsBuffer(f function) bool {
	_, large := largeCountName(f)
	return !large && slices.ContainsFunc(f.params, func(p param) bool { return p.name == "buffer_addr" })
}

// fortranShim holds the parts of a shim.
type fortranShim struct {
	f08                   bool
	params, lengths       []string
	before, after, values []string
}

// fortranShim returns the procedure pmpi_x_ for the function MPI_X. If f08 is set, it returns the procedure for mpi_f08
// where that procedure differs.
func (a *abi) fortranShim(f function, f08 bool) (string, error) {
	_, large := largeCountName(f)
	shim := fortranShim{f08: f08 || large}
	for _, p := range f.params {
		if err := a.fortranParam(&shim, f, p); err != nil {
			return "", fmt.Errorf("parameter %s: %w", p.name, err)
		}
	}
	name, weak := "pmpi_"+strings.ToLower(f.name)+"_", ""
	if f08 {
		name = "pmpir_" + strings.ToLower(f.name) + "_f08_"
		weak = fmt.Sprintf("WEAK(mpi_%[1]s_f08_, %[2]s)\nWEAK(pmpi_%[1]s_f08_, %[2]s)\n", strings.ToLower(f.name), name)
	}
	call := fmt.Sprintf("PMPI_%s(%s)", f.name, strings.Join(shim.values, ", "))
	if f.result != "" {
		result, _ := a.cType(f.result)
		params := strings.Join(shim.params, ", ")
		if params == "" {
			params = "void"
		}
		return fmt.Sprintf("\n%s %s(%s) { return %s; }\n", result, name, params, call), nil
	}
	var b strings.Builder
	params := append(append(shim.params, "MPI_Fint *ierr"), shim.lengths...)
	fmt.Fprintf(&b, "\nvoid %s(%s) {\n    OPTIONAL(ierr)\n", name, strings.Join(params, ", "))
	for _, line := range shim.before {
		fmt.Fprintf(&b, "    %s\n", line)
	}
	fmt.Fprintf(&b, "    *ierr = %s;\n", call)
	for _, line := range shim.after {
		fmt.Fprintf(&b, "    %s\n", line)
	}
	b.WriteString("}\n" + weak)
	return b.String(), nil
}

func isBuffer(p param) bool { return p.typ.base == "choice" && p.typ.pointers == 1 }

// descriptorShim returns the procedure for programs whose buffers have assumed rank, as in MPICH's module.
func (a *abi) descriptorShim(f function) (string, error) {
	var shim fortranShim
	for _, p := range f.params {
		if err := a.fortranParam(&shim, f, p); err != nil {
			return "", fmt.Errorf("%s: %w", f.name, err)
		}
	}
	var values, checks []string
	for i, p := range f.params {
		value := p.name
		if isBuffer(p) {
			shim.params[i], value = "struct descriptor *"+p.name, p.name+"->base"
			checks = append(checks, fmt.Sprintf("contiguous(%s, ierr)", p.name))
		}
		values = append(values, value)
	}
	for _, length := range shim.lengths {
		values = append(values, strings.TrimPrefix(length, "size_t "))
	}
	values = slices.Insert(values, len(f.params), "ierr")
	params := append(append(shim.params, "MPI_Fint *ierr"), shim.lengths...)
	lower := strings.ToLower(f.name)
	name := lower + "_f08ts_"
	if short, large := largeCountName(f); large {
		name = strings.ToLower(short) + "_f08ts_large_"
	}
	return fmt.Sprintf("void pmpir_%s(%s) {\n    OPTIONAL(ierr)\n    if (%s)\n        pmpi_%s_(%s);\n}\nWEAK(mpi_%[1]s, pmpir_%[1]s)\n", name,
		strings.Join(params, ", "), strings.Join(checks, " && "), lower, strings.Join(values, ", ")), nil
}

// fortranParam adds a parameter to a shim.
func (a *abi) fortranParam(shim *fortranShim, f function, p param) error {
	n, spec := p.name, p.typ
	base, cl := a.cType(spec.base)
	indirect := spec.pointers + len(spec.arrays)
	add := func(ctype, value string, before, after string) {
		shim.params = append(shim.params, ctype+n)
		shim.values = append(shim.values, value)
		if before != "" {
			shim.before = append(shim.before, before)
		}
		if after != "" {
			shim.after = append(shim.after, after)
		}
	}
	switch {
	// Before MPI-2, an address in Fortran was an INTEGER.
	case f.abi == mpich && spec.base == "Aint" && indirect == 0:
		add("MPI_Fint *", "*"+n, "", "")
	case f.abi == mpich && spec.base == "Aint" && spec.pointers == 1:
		add("MPI_Fint *", "&"+n+"_c", "MPI_Aint "+n+"_c = 0;", fmt.Sprintf("*%s = (MPI_Fint)%s_c;", n, n))
	case f.abi == mpich && spec.base == "Aint":
		add("MPI_Fint *", n+"_c",
			fmt.Sprintf("MPI_Aint *%[1]s_c = malloc((*count > 0 ? (size_t)*count : 1) * sizeof *%[1]s_c);\n"+
				"    if (%[1]s_c == NULL) {\n        *ierr = MPI_ERR_NO_MEM;\n        return;\n    }\n"+
				"    for (MPI_Fint i = 0; i < *count; i++)\n        %[1]s_c[i] = %[1]s[i];", n),
			fmt.Sprintf("free(%s_c);", n))

	case spec.base == "File" && indirect == 0:
		add("MPI_Fint *", fmt.Sprintf("PMPI_File_f2c(*%s)", n), "", "")
	case spec.base == "File" && indirect == 1 && f.name == "File_open":
		add("MPI_Fint *", "&"+n+"_c", fmt.Sprintf("MPI_File %s_c = MPI_FILE_NULL;", n),
			fmt.Sprintf("*%s = PMPI_File_c2f(%s_c);", n, n))
	case spec.base == "File" && indirect == 1:
		add("MPI_Fint *", "&"+n+"_c", fmt.Sprintf("MPI_File %s_c = PMPI_File_f2c(*%s);", n, n),
			fmt.Sprintf("*%s = PMPI_File_c2f(%s_c);", n, n))

	case spec.base == "logical" && indirect == 0:
		add("MPI_Fint *", fmt.Sprintf("*%s != 0", n), "", "")
	case spec.base == "choice" && spec.pointers == 1:
		add("void *", fmt.Sprintf("buffer_of(%s)", n), "", "")
	case n == "buffer_addr" && shim.f08:
		add("void **", n, "", fmt.Sprintf("*%[1]s = f08_buffer(*%[1]s);", n))
	case n == "buffer_addr":
		add("void *", "&"+n+"_c", fmt.Sprintf("void *%[1]s_c;\n    (void)%[1]s;", n), "")
	case spec.base == "void" && spec.pointers == 1:
		add("void *", n, "", "")
	case spec.base == "Status":
		add("MPI_Fint *", fmt.Sprintf("status_of(%s)", n), "", "")
	case spec.base == "index" && spec.pointers == 1:
		add("MPI_Fint *", "&"+n+"_c", fmt.Sprintf("int %s_c = MPI_UNDEFINED;", n),
			fmt.Sprintf("*%[1]s = %[1]s_c == MPI_UNDEFINED ? MPI_UNDEFINED : %[1]s_c + 1;", n))
	case spec.base == "index":
		add("MPI_Fint *", n, "*outcount = 0;", fmt.Sprintf("for (MPI_Fint i = 0; i < *outcount; i++)\n        %s[i]++;", n))
	case strings.HasSuffix(n, "weights"):
		add("MPI_Fint *", fmt.Sprintf("weights_of(%s)", n), "", "")
	case n == "array_of_errcodes":
		add("MPI_Fint *", fmt.Sprintf("errcodes_of(%s)", n), "", "")

	case spec.base == "char" && spec.constant && indirect == 1:
		function := "string_of"
		if strings.HasPrefix(f.name, "Info_") {
			function = "word_of"
		}
		add("char *", fmt.Sprintf("%[2]s(%[1]s_c, %[1]s, %[1]s_length)", n, function),
			fmt.Sprintf("char %[1]s_c[%[1]s_length + 1];", n), "")
		shim.lengths = append(shim.lengths, fmt.Sprintf("size_t %s_length", n))
	case spec.base == "char" && spec.pointers == 1 && indirect == 1:
		condition := "*ierr == MPI_SUCCESS"
		if slices.ContainsFunc(f.params, func(p param) bool { return p.name == "flag" }) {
			condition += " && *flag"
		}
		// The longest string in the standard fits.
		add("char *", n+"_c", fmt.Sprintf("char %s_c[MPI_MAX_LIBRARY_VERSION_STRING];", n),
			fmt.Sprintf("if (%[2]s)\n        set_string(%[1]s, %[1]s_length, %[1]s_c);", n, condition))
		shim.lengths = append(shim.lengths, fmt.Sprintf("size_t %s_length", n))

	case cl == "" && strings.Contains(spec.base, "_function") && spec.pointers == 1:
		add("MPI_"+spec.base+" *", n, "", "") // C passes it by reference too
	case cl == integer && indirect == 0:
		add(fortranInteger(a, spec.base, base)+" *", "*"+n, "", "")
	case cl == integer && spec.pointers+len(spec.arrays) == 1:
		add(fortranInteger(a, spec.base, base)+" *", n, "", "")
	case cl == integer && len(spec.arrays) == 2:
		add(base+" (*", n, "", "")
		shim.params[len(shim.params)-1] += ")[" + spec.arrays[1] + "]"
	default:
		return fmt.Errorf("no rule for a parameter of type %q: write the procedure in fortran.h", a.declare(spec, ""))
	}
	return nil
}

// fortranInteger returns the Fortran type of an integer or a handle.
func fortranInteger(a *abi, name, base string) string {
	if _, handle := a.handles[name]; handle || base == "int" {
		return "MPI_Fint"
	}
	return base
}

// mpifH returns mpif.h, in a form that is valid in both of Fortran's source forms.
func (a *abi) mpifH() string {
	var b strings.Builder
	fmt.Fprintf(&b, "!     MPI for Fortran, for the ABI %s. This file is %s.\n", a.name, generatedBy)
	parameter := func(typ, name, value string) {
		fmt.Fprintf(&b, "      %s MPI_%s\n      PARAMETER (MPI_%s=%s)\n", typ, name, name, value)
	}
	for i, field := range a.status {
		if name, ok := strings.CutPrefix(field, "MPI_"); ok {
			parameter("INTEGER", name, fmt.Sprint(i+1))
		}
	}
	parameter("INTEGER", "STATUS_SIZE", fmt.Sprint(len(a.status)))
	for _, kind := range []string{"ADDRESS", "COUNT", "OFFSET"} {
		parameter("INTEGER", kind+"_KIND", "8")
	}
	parameter("INTEGER", "INTEGER_KIND", "4")
	for _, c := range a.constants {
		value, ok := fortranValue(c)
		switch {
		case !ok:
		case c.typ.base == "Offset":
			parameter("INTEGER*8", c.name, fmt.Sprint(value))
		default:
			parameter("INTEGER", c.name, fmt.Sprint(value))
		}
	}
	b.WriteString(mpifTail)
	return b.String()
}

// fortranValue returns a constant's value in Fortran, and reports whether the constant exists there.
func fortranValue(c constant) (int64, bool) {
	switch {
	case c.typ.pointers > 0 || strings.HasPrefix(c.name, "T_") || strings.HasPrefix(c.name, "F_"):
		return 0, false
	case c.value&^0xf == 0x64400000 || c.value&^0xf == 0x66000000:
		return c.value + 1, true // a predefined attribute; its value is an integer instead of a pointer
	case strings.HasPrefix(c.name, "MAX_"):
		return c.value - 1, true // does not include the null character
	}
	return c.value, true
}

// mpifTail declares the variables that the library recognizes by their addresses. Their names and their order are part
// of the ABI.
const mpifTail = `      LOGICAL MPI_SUBARRAYS_SUPPORTED
      PARAMETER (MPI_SUBARRAYS_SUPPORTED=.FALSE.)
      LOGICAL MPI_ASYNC_PROTECTS_NONBLOCKING
      PARAMETER (MPI_ASYNC_PROTECTS_NONBLOCKING=.FALSE.)
      INTEGER MPI_BOTTOM, MPI_IN_PLACE
      INTEGER MPI_STATUS_IGNORE(MPI_STATUS_SIZE)
      COMMON /MPIPRIV1/ MPI_BOTTOM, MPI_IN_PLACE, MPI_STATUS_IGNORE
      SAVE /MPIPRIV1/
      INTEGER MPI_STATUSES_IGNORE(MPI_STATUS_SIZE,1)
      INTEGER MPI_ERRCODES_IGNORE(1)
      COMMON /MPIPRIV2/ MPI_STATUSES_IGNORE, MPI_ERRCODES_IGNORE
      SAVE /MPIPRIV2/
      CHARACTER*1 MPI_ARGVS_NULL(1,1), MPI_ARGV_NULL(1)
      COMMON /MPIPRIVC/ MPI_ARGVS_NULL, MPI_ARGV_NULL
      SAVE /MPIPRIVC/
      INTEGER MPI_UNWEIGHTED
      COMMON /MPIFCMB5/ MPI_UNWEIGHTED
      SAVE /MPIFCMB5/
      INTEGER MPI_WEIGHTS_EMPTY
      COMMON /MPIFCMB9/ MPI_WEIGHTS_EMPTY
      SAVE /MPIFCMB9/
      INTEGER MPI_BUFFER_AUTOMATIC(1)
      COMMON /MPIFCMBA/ MPI_BUFFER_AUTOMATIC
      SAVE /MPIFCMBA/
      EXTERNAL MPI_NULL_COPY_FN, MPI_DUP_FN, MPI_NULL_DELETE_FN
      EXTERNAL MPI_COMM_NULL_COPY_FN, MPI_COMM_DUP_FN
      EXTERNAL MPI_COMM_NULL_DELETE_FN
      EXTERNAL MPI_TYPE_NULL_COPY_FN, MPI_TYPE_DUP_FN
      EXTERNAL MPI_TYPE_NULL_DELETE_FN
      EXTERNAL MPI_WIN_NULL_COPY_FN, MPI_WIN_DUP_FN
      EXTERNAL MPI_WIN_NULL_DELETE_FN, MPI_CONVERSION_FN_NULL
      DOUBLE PRECISION MPI_WTIME, MPI_WTICK, PMPI_WTIME, PMPI_WTICK
      EXTERNAL MPI_WTIME, MPI_WTICK, PMPI_WTIME, PMPI_WTICK
      INTEGER*8 MPI_AINT_ADD, MPI_AINT_DIFF
      EXTERNAL MPI_AINT_ADD, MPI_AINT_DIFF
      INTEGER*8 PMPI_AINT_ADD, PMPI_AINT_DIFF
      EXTERNAL PMPI_AINT_ADD, PMPI_AINT_DIFF
`

// mpiModule returns module mpi, which consists of mpif.h and MPI_SIZEOF.
func mpiModule() string {
	interfaces, procedures := sizeofModule("integer, intent(out)")
	return fmt.Sprintf("! Module mpi, %s.\nmodule mpi\n  implicit none\n  include 'mpif.h'\n%scontains\n%send module\n",
		generatedBy, interfaces, procedures)
}

// sizeofModule returns the two parts of a module that MPI_SIZEOF needs: its interfaces and its procedures. MPI_SIZEOF
// has one procedure per type, because its result depends on the type of its argument.
func sizeofModule(ierror string) (interfaces, procedures string) {
	types := []string{
		"integer(1)", "integer(2)", "integer(4)", "integer(8)", "real(4)", "real(8)", "real(16)",
		"complex(4)", "complex(8)", "complex(16)", "logical(1)", "logical(2)", "logical(4)", "logical(8)", "character(*)",
	}
	var i, p strings.Builder
	var names []string
	i.WriteString("  interface MPI_SIZEOF\n")
	for _, t := range types {
		name, size, assign := "sizeof_"+strings.NewReplacer("(", "_", ")", "", "*",
			"n").Replace(t), "storage_size(x) / 8", "ierror = MPI_SUCCESS"
		if t == "character(*)" {
			size = "1"
		}
		if strings.Contains(ierror, "optional") {
			assign = "if (present(ierror)) " + assign
		}
		names = append(names, name)
		fmt.Fprintf(&i, "    module procedure %s\n", name)
		fmt.Fprintf(&p, "  subroutine %s(x, size, ierror)\n    %s, intent(in) :: x(..)\n    integer, intent(out) :: size\n    %s :: ierror\n"+
			"    size = %s\n    %s\n  end subroutine\n", name, t, ierror, size, assign)
	}
	fmt.Fprintf(&i, "  end interface\n  private :: &\n    %s\n", strings.Join(names, ", &\n    "))
	return i.String(), p.String()
}
