package main

import (
	"fmt"
	"slices"
	"strings"
)

// f08Module returns module mpi_f08. Its generic procedures map to the procedures of the Fortran library, both
// with and without large counts.
func (a *abi) f08Module(table []function) string {
	var b strings.Builder
	fmt.Fprintf(&b, "! Module mpi_f08, %s. A buffer that is not contiguous is copied before and after a call, also "+
		"before one that\n"+
		"! does not wait: MPI_SUBARRAYS_SUPPORTED is false.\nmodule mpi_f08\n  use, intrinsic :: iso_c_binding, "+
		"only: c_ptr\n  implicit none\n"+
		"  private :: c_ptr\n", generatedBy)
	handles := slices.DeleteFunc(slices.Clone(a.handleNames),
		func(name string) bool { return strings.HasPrefix(name, "T_") })
	for _, name := range handles {
		fmt.Fprintf(&b, "  type, bind(C) :: MPI_%s\n    integer :: MPI_VAL\n  end type\n", name)
	}
	b.WriteString("  type, bind(C) :: MPI_Status\n")
	for _, field := range a.status {
		fmt.Fprintf(&b, "    integer :: %s\n", field)
	}
	b.WriteString("  end type\n")
	for _, name := range []string{"ADDRESS", "COUNT", "OFFSET"} {
		fmt.Fprintf(&b, "  integer, parameter :: MPI_%s_KIND = 8\n", name)
	}
	b.WriteString("  integer, parameter :: MPI_INTEGER_KIND = 4\n")
	fmt.Fprintf(&b, "  integer, parameter :: MPI_STATUS_SIZE = %d\n", len(a.status))
	b.WriteString("  logical, parameter :: MPI_SUBARRAYS_SUPPORTED = .false., MPI_ASYNC_PROTECTS_NONBLOCKING = " +
		".false.\n")
	for _, c := range a.constants {
		value, ok := fortranValue(c)
		_, handle := a.handles[c.typ.base]
		switch {
		case !ok:
		case handle:
			fmt.Fprintf(&b, "  type(MPI_%[1]s), parameter :: MPI_%[2]s = MPI_%[1]s(%[3]d)\n", c.typ.base, c.name, value)
		case c.typ.base == "Offset":
			fmt.Fprintf(&b, "  integer(MPI_OFFSET_KIND), parameter :: MPI_%s = %d\n", c.name, value)
		default:
			fmt.Fprintf(&b, "  integer, parameter :: MPI_%s = %d\n", c.name, value)
		}
	}
	b.WriteString(f08Variables)
	for _, operator := range []string{"==", "/="} {
		fmt.Fprintf(&b, "  interface operator(%s)\n", operator)
		for _, name := range handles {
			fmt.Fprintf(&b, "    module procedure %s\n", comparisonName(operator, name))
		}
		b.WriteString("  end interface\n")
	}
	var private []string
	for _, operator := range []string{"==", "/="} {
		for _, name := range handles {
			private = append(private, comparisonName(operator, name))
		}
	}
	fmt.Fprintf(&b, "  private :: %s\n", strings.Join(private, ", &\n    "))

	interfaces, procedures := sizeofModule("integer, optional, intent(out)")
	b.WriteString(interfaces)
	b.WriteString("  abstract interface\n")
	b.WriteString(f08Callbacks)
	b.WriteString("  end interface\n")
	for _, prefix := range []string{"mpi", "pmpi"} {
		for _, f := range table {
			if _, large := largeCountName(f); large || !inF08(f) {
				continue
			}
			fmt.Fprintf(&b, "  interface %s_%s\n", prefix, f.name)
			a.f08Interface(&b, f, fmt.Sprintf("%s_%s_f08", prefix, f.name))
			if i := slices.IndexFunc(table, func(g function) bool { return g.name == f.name+"_c" }); i >= 0 &&
				inF08(table[i]) && largeDiffers(f, table[i]) {
				a.f08Interface(&b, table[i], fmt.Sprintf("%s_%s_f08_large", prefix, f.name))
			}
			b.WriteString("  end interface\n")
		}
		fmt.Fprintf(&b, "  interface %[1]s_F_sync_reg\n    subroutine %[1]s_f_sync_reg_f08(buf)\n"+
			"      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf\n      type(*), dimension(*) :: buf\n    end subroutine\n  "+
			"end interface\n", prefix)
	}
	b.WriteString("contains\n")
	for _, operator := range []string{"==", "/="} {
		for _, name := range handles {
			fmt.Fprintf(&b, "  elemental logical function %[1]s(a, b)\n    type(MPI_%[2]s), intent(in) :: a, b\n"+
				"    %[1]s = a%%MPI_VAL %[3]s b%%MPI_VAL\n  end function\n", comparisonName(operator, name), name, operator)
		}
	}
	b.WriteString(procedures)
	b.WriteString("end module\n")
	return b.String()
}

func comparisonName(operator, handle string) string {
	if operator == "==" {
		return "equal_" + handle
	}
	return "differ_" + handle
}

// largeDiffers reports whether Fortran can distinguish a call with large counts from the call without them, by
// the kinds of its arguments. Addresses, counts and procedures have the same kind in both.
func largeDiffers(f, large function) bool {
	for i, p := range f.params {
		if i < len(large.params) && p.typ.base == "int" && f08Type(large.params[i].typ.base) != "integer" {
			return true
		}
	}
	return len(f.params) != len(large.params)
}

// f08Type returns the Fortran type of an argument, without its attributes.
func f08Type(base string) string {
	switch base {
	case "int", "index":
		return "integer"
	case "logical":
		return "logical"
	case "double":
		return "double precision"
	case "Aint", "attr", "state":
		return "integer(MPI_ADDRESS_KIND)"
	case "Count", "Offset":
		return "integer(MPI_" + strings.ToUpper(base) + "_KIND)"
	case "char":
		return "character(len=*)"
	case "choice":
		return "type(*)"
	case "void":
		return "type(c_ptr)"
	}
	return "type(MPI_" + base + ")"
}

// f08Interface writes the declaration of a library procedure.
func (a *abi) f08Interface(b *strings.Builder, f function, name string) {
	kind, result, params := "subroutine", "", f.params
	if f.name == "Init" || f.name == "Init_thread" || f.name == "Info_create_env" {
		params = params[2:] // omit argc and argv
	}
	var names []string
	for _, p := range params {
		if p.name != "" {
			names = append(names, p.name)
		}
	}
	switch {
	case f.result != "":
		kind, result = "function", fmt.Sprintf("      %s :: %s\n", f08Type(f.result), name)
	case f.name != "Pcontrol":
		names = append(names, "ierror")
	}
	fmt.Fprintf(b, "    %s %s(%s)\n      import\n%s", kind, name, strings.Join(names, ", &\n      "), result)
	for _, p := range params {
		if p.name != "" {
			a.f08Argument(b, p)
		}
	}
	if names != nil && names[len(names)-1] == "ierror" {
		b.WriteString("      integer, optional, intent(out) :: ierror\n")
	}
	fmt.Fprintf(b, "    end %s\n", kind)
}

// f08Argument declares a parameter in Fortran 2008. A buffer accepts any type and rank, which only an attribute of the
// compiler permits.
func (a *abi) f08Argument(b *strings.Builder, p param) {
	spec := p.typ
	if strings.Contains(spec.base, "_function") {
		fmt.Fprintf(b, "      external :: %s\n", p.name)
		return
	}
	if isBuffer(p) {
		fmt.Fprintf(b, "      !GCC$ ATTRIBUTES NO_ARG_CHECK :: %s\n      type(*), dimension(*) :: %s\n", p.name, p.name)
		return
	}
	attributes, shape := "", ""
	if spec.constant || spec.pointers+len(spec.arrays) == 0 {
		attributes = ", intent(in)"
	}
	switch {
	case spec.base == "char" && spec.pointers+len(spec.arrays) == 3:
		shape = "(count, *)"
	case spec.base == "char" && spec.pointers+len(spec.arrays) == 2, strings.HasPrefix(p.name, "array_of_"):
		shape = "(*)"
	case len(spec.arrays) == 2:
		shape = "(" + spec.arrays[1] + ", *)"
	case len(spec.arrays) == 1 && spec.base != "char":
		shape = "(*)"
	}
	fmt.Fprintf(b, "      %s%s :: %s%s\n", f08Type(spec.base), attributes, p.name, shape)
}

// f08Variables declares the variables that the library recognizes by their addresses. MPICH's module has the same
// symbols.
const f08Variables = `  type(MPI_Status), bind(C, name="MPIR_F08_MPI_STATUS_IGNORE_OBJ"), target :: MPI_STATUS_IGNORE
  type(MPI_Status), bind(C, name="MPIR_F08_MPI_STATUSES_IGNORE_OBJ"), target :: MPI_STATUSES_IGNORE(1)
  integer, bind(C, name="MPIR_F08_MPI_BOTTOM"), target :: MPI_BOTTOM
  integer, bind(C, name="MPIR_F08_MPI_IN_PLACE"), target :: MPI_IN_PLACE
  integer, bind(C, name="__mpi_f08_link_constants_MOD_mpi_buffer_automatic"), target :: MPI_BUFFER_AUTOMATIC(1)
  integer, bind(C, name="__mpi_f08_link_constants_MOD_mpi_unweighted"), target :: MPI_UNWEIGHTED(1)
  integer, bind(C, name="__mpi_f08_link_constants_MOD_mpi_weights_empty"), target :: MPI_WEIGHTS_EMPTY(1)
  integer, bind(C, name="__mpi_f08_link_constants_MOD_mpi_errcodes_ignore"), target :: MPI_ERRCODES_IGNORE(1)
  character, bind(C, name="__mpi_f08_link_constants_MOD_mpi_argv_null"), target :: MPI_ARGV_NULL(1)
  character, bind(C, name="__mpi_f08_link_constants_MOD_mpi_argvs_null"), target :: MPI_ARGVS_NULL(1, 1)
  external :: MPI_COMM_NULL_COPY_FN, MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN
  external :: MPI_TYPE_NULL_COPY_FN, MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN
  external :: MPI_WIN_NULL_COPY_FN, MPI_WIN_DUP_FN, MPI_WIN_NULL_DELETE_FN, MPI_CONVERSION_FN_NULL
`

// f08Callbacks declares the interfaces that a program may use to declare its own procedures.
const f08Callbacks = `    subroutine MPI_User_function(invec, inoutvec, len, datatype)
      import
      type(c_ptr), value :: invec, inoutvec
      integer :: len
      type(MPI_Datatype) :: datatype
    end subroutine
    subroutine MPI_Comm_copy_attr_function(oldcomm, comm_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
      import
      type(MPI_Comm) :: oldcomm
      integer :: comm_keyval, ierror
      integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
      logical :: flag
    end subroutine
    subroutine MPI_Comm_delete_attr_function(comm, comm_keyval, attribute_val, extra_state, ierror)
      import
      type(MPI_Comm) :: comm
      integer :: comm_keyval, ierror
      integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
    end subroutine
    subroutine MPI_Type_copy_attr_function(oldtype, type_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
      import
      type(MPI_Datatype) :: oldtype
      integer :: type_keyval, ierror
      integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
      logical :: flag
    end subroutine
    subroutine MPI_Type_delete_attr_function(datatype, type_keyval, attribute_val, extra_state, ierror)
      import
      type(MPI_Datatype) :: datatype
      integer :: type_keyval, ierror
      integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
    end subroutine
    subroutine MPI_Comm_errhandler_function(comm, error_code)
      import
      type(MPI_Comm) :: comm
      integer :: error_code
    end subroutine
    subroutine MPI_Grequest_query_function(extra_state, status, ierror)
      import
      integer(MPI_ADDRESS_KIND) :: extra_state
      type(MPI_Status) :: status
      integer :: ierror
    end subroutine
    subroutine MPI_Grequest_free_function(extra_state, ierror)
      import
      integer(MPI_ADDRESS_KIND) :: extra_state
      integer :: ierror
    end subroutine
    subroutine MPI_Grequest_cancel_function(extra_state, complete, ierror)
      import
      integer(MPI_ADDRESS_KIND) :: extra_state
      logical :: complete
      integer :: ierror
    end subroutine
`
