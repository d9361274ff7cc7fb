package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// bin is the result of lib/build.sh, which runs once for all tests.
var bin struct {
	once   sync.Once
	folder string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if bin.folder != "" {
		os.RemoveAll(filepath.Dir(bin.folder))
	}
	os.Exit(code)
}

// build runs lib/build.sh and returns the folder. Its libzrlmpi prints the loaded ABI and the calls, which all succeed,
// because the tests are about the shims, names and paths.
func build(t *testing.T) string {
	t.Helper()
	needs.Program(t, "build of the C library", "cc", "gcc")
	bin.once.Do(func() {
		dir, err := os.MkdirTemp("", "zrlmpi-lib-")
		if err != nil {
			t.Fatal(err)
		}
		bin.folder = filepath.Join(dir, "bin")
		file := func(name, text string) string {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
			return path
		}
		core := file("core.c", coreOfTests(tables(t).table))
		t.Setenv("VERSION", "v1.2.3")
		t.Setenv("GO", file("go", `#!/bin/sh
[ "$1" = build ] || exec go "$@"
while [ "$1" != -o ]; do shift; done
exec cc -shared -fPIC -Wall -Wextra -Werror -I lib/c -Wl,-soname,libzrlmpi.so -o "$2" `+core+"\n"))
		command(t, "../build.sh", bin.folder)
	})
	if _, err := os.Stat(filepath.Join(bin.folder, "zrlmpicc")); err != nil {
		t.Fatal("lib/build.sh has failed: ", err)
	}
	return bin.folder
}

// coreOfTests prints the names of calls. For some calls it also uses arguments and results that show how a shim
// converts them.
func coreOfTests(table []function) string {
	var b strings.Builder
	b.WriteString("#include \"zrlmpi.h\"\n#include <stdio.h>\n#include <string.h>\n\n")
	for i, f := range table {
		fmt.Fprintf(&b, "#define %s_CALL %d\n", f.name, i)
	}
	b.WriteString("\nstatic const char *names[] = {\n")
	for _, f := range table {
		fmt.Fprintf(&b, "    %q,\n", f.name)
	}
	b.WriteString(`};

typedef int copy_function(int object, int key, void *extra, void *in, void *out, int *flag);
static copy_function *copy;
static void *extra;
static int forty_two = 42;

void *zrl_load(int abi) { printf("abi %d\n", abi); return 0; }
int zrl_start(int argc, char **argv) { return argv == NULL ? 0 : argc; }
void zrl_statistics(char *text, size_t size) { if (size > 0) *text = 0; }

int zrl_call(int call, zrl_arg *a) {
    printf("%s", names[call]);
    switch (call) {
    case Initialized_CALL:
        *(int *)a[0].p = 1;
        break;
    case Send_CALL:
        if (a[0].p == NULL)
            printf(" bottom");
        else
            printf(" %d", *(int *)a[0].p);
        printf(" count %d tag %d", (int)a[1].i, (int)a[4].i);
        break;
    case Allreduce_CALL:
        printf(" %s", a[0].i == -1 ? "in place" : "buffer");
        break;
    case Recv_CALL:
        if (a[6].i == 1)
            printf(" ignore");
        else
            memcpy(a[6].p, (int[]){8, 0, 3, 4, 5}, 20);
        break;
    case Waitall_CALL:
        printf(" %s", a[2].i == 1 ? "ignore" : "statuses");
        break;
    case Waitany_CALL:
        *(int *)a[2].p = 0;
        break;
    case Testany_CALL:
        *(int *)a[2].p = -32766;
        *(int *)a[3].p = 1;
        break;
    case Waitsome_CALL:
        *(int *)a[2].p = 2;
        memcpy(a[3].p, (int[]){0, 2}, 8);
        break;
    case Buffer_detach_CALL:
        *(void **)a[0].p = NULL;
        break;
    case Comm_detach_buffer_CALL:
        *(void **)a[1].p = NULL;
        break;
    case Get_processor_name_CALL:
        strcpy(a[0].p, "host");
        *(int *)a[1].p = 4;
        break;
    case Comm_set_name_CALL:
        printf(" [%s]", (char *)a[1].p);
        break;
    case Info_set_CALL:
        printf(" [%s] [%s]", (char *)a[1].p, (char *)a[2].p);
        break;
    case Info_get_CALL:
        printf(" [%s] %d", (char *)a[1].p, (int)a[2].i);
        strcpy(a[3].p, "value");
        *(int *)a[4].p = 1;
        break;
    case Info_get_string_CALL:
        printf(" %d", *(int *)a[2].p);
        strcpy(a[3].p, "value");
        *(int *)a[2].p = 6;
        *(int *)a[4].p = 1;
        break;
    case Comm_create_keyval_CALL:
        copy = (copy_function *)a[0].p, extra = a[3].p;
        *(int *)a[2].p = 77;
        break;
    case Comm_set_attr_CALL:
        printf(" %lld", (long long)a[2].i);
        break;
    case Comm_get_attr_CALL:
        printf(" key %x", (int)a[1].i);
        *(void **)a[2].p = a[1].i == 77 ? (void *)(INT64_C(5) << 32) : (void *)&forty_two;
        *(int *)a[3].p = 1;
        break;
    case Comm_dup_CALL: {
        void *out = NULL;
        int flag = 0, code = copy((int)a[0].i, 77, extra, (void *)(INT64_C(5) << 32), &out, &flag);
        printf(" code %d flag %d out %lld", code, flag, (long long)(intptr_t)out);
        break;
    }
    case Type_struct_CALL:
        printf(" %ld %ld", (long)((int64_t *)a[2].p)[0], (long)((int64_t *)a[2].p)[1]);
        break;
    case Dist_graph_create_adjacent_CALL:
        printf(" %d %d reorder %d", (int)a[3].i, (int)a[6].i, (int)a[8].i);
        break;
    case Comm_spawn_CALL:
        printf(" [%s] [%s] [%s]", (char *)a[0].p, ((char **)a[1].p)[0], ((char **)a[1].p)[1]);
        printf(" %s", ((char **)a[1].p)[2] == NULL ? "end" : "more");
        break;
    case Comm_spawn_multiple_CALL:
        printf(" [%s] [%s] [%s] [%s]", ((char **)a[1].p)[0], ((char **)a[1].p)[1], ((char ***)a[2].p)[0][0], ((char ***)a[2].p)[1][0]);
        break;
    }
    printf("\n");
    return 0;
}

`)
	return b.String()
}

// TestBuild checks that the wrappers and pkg-config can build programs for both ABIs, and that these run without
// LD_LIBRARY_PATH.
func TestBuild(t *testing.T) {
	folder := build(t)
	program := filepath.Join(t.TempDir(), "program.c")
	if err := os.WriteFile(program, []byte(`#include <mpi.h>

int main(int argc, char **argv) {
    int initialized = 0;
    MPI_Init(&argc, &argv);
    MPI_Initialized(&initialized);
    return MPI_Wtime() > 0 && MPI_Wtick() == 1e-9 && initialized ? MPI_Finalize() : 1;
}
`), 0o644); err != nil {
		t.Fatal(err)
	}
	pkgConfig := func(module string) []string {
		path := needs.Program(t, "files for pkg-config", "pkg-config", "pkgconf")
		t.Setenv("PKG_CONFIG_PATH", filepath.Join(folder, "lib/pkgconfig"))
		return append([]string{"cc", program}, strings.Fields(command(t, path, "--cflags", "--libs", module))...)
	}
	cc, cxx := filepath.Join(folder, "zrlmpicc"), filepath.Join(folder, "zrlmpicxx")
	for _, c := range []struct {
		name, abi string
		command   []string
	}{
		{"zrlmpicc", "2", []string{cc, program}},
		{"zrlmpicc, mpich", "1", []string{cc, "-abi=mpich", program}},
		{"zrlmpicxx", "2", []string{cxx, "-x", "c++", program}},
		{"zrlmpicc -show", "2", strings.Fields(command(t, cc, "-show", program))},
		{"pkg-config zrlmpi", "2", pkgConfig("zrlmpi")},
		{"pkg-config zrlmpi-mpich", "1", pkgConfig("zrlmpi-mpich")},
	} {
		t.Run(c.name, func(t *testing.T) {
			into := filepath.Join(t.TempDir(), "program")
			command(t, c.command[0], append(c.command[1:], "-o", into)...)
			if got, want := command(t, into), "abi "+c.abi+"\nInit\nInitialized\nFinalize\n"; got != want {
				t.Errorf("it printed %q, want %q", got, want)
			}
		})
	}
	if got := command(t, cc, "-link_info"); !strings.Contains(got, "-lmpi_abi") {
		t.Errorf("-link_info: %s", got)
	}
	if got := command(t, cc, "-show", "-c", program); strings.Contains(got, "-lmpi") {
		t.Errorf("libraries without linking: %s", got)
	}
}

// TestFortran calls everything that differs from C, with mpif.h and with the module.
func TestFortran(t *testing.T) {
	needs.Program(t, "MPI for Fortran", "gfortran", "gfortran")
	folder := build(t)
	for _, header := range []string{"use mpi", "include"} {
		t.Run(header, func(t *testing.T) {
			use, include := "use mpi", ""
			if header == "include" {
				use, include = "", "include 'mpif.h'"
			}
			dir := t.TempDir()
			program := filepath.Join(dir, "program.f90")
			if err := os.WriteFile(program, fmt.Appendf(nil, fortranProgram, use, include), 0o644); err != nil {
				t.Fatal(err)
			}
			for _, mangling := range []string{"-funderscoring", "-fsecond-underscore"} {
				into := filepath.Join(dir, "program")
				command(t, filepath.Join(folder, "zrlmpifort"), mangling, program, "-o", into)
				if got := command(t, into); got != fortranCalls {
					t.Errorf("%s: it printed\n%s\nwant\n%s", mangling, got, fortranCalls)
				}
			}
		})
	}
}

// TestFortran2008 checks that programs using our module mpi_f08 can call the procedures of MPICH's module, whose
// buffers have descriptors.
func TestFortran2008(t *testing.T) {
	needs.Program(t, "module mpi_f08", "gfortran", "gfortran")
	folder, dir := build(t), t.TempDir()
	program, into := filepath.Join(dir, "program.f90"), filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte(f08Program), 0o644); err != nil {
		t.Fatal(err)
	}
	command(t, filepath.Join(folder, "zrlmpifort"), program, "-o", into)
	if got := command(t, into); got != f08Calls {
		t.Errorf("it printed\n%s\nwant\n%s", got, f08Calls)
	}
}

const f08Program = `program main
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_ptr
  implicit none
  interface
    subroutine mpi_send_f08ts(buf, count, datatype, dest, tag, comm, ierror)
      import
      type(*), dimension(..), intent(in) :: buf
      integer, intent(in) :: count, dest, tag
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Comm), intent(in) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine pmpir_send_f08ts(buf, count, datatype, dest, tag, comm, ierror)
      import
      type(*), dimension(..), intent(in) :: buf
      integer, intent(in) :: count, dest, tag
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Comm), intent(in) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine
    double precision function pmpir_wtime_f08() bind(C, name="pmpir_wtime_f08_")
    end function
    subroutine pmpir_buffer_detach_f08(buffer, size, ierror) bind(C, name="pmpir_buffer_detach_f08_")
      use, intrinsic :: iso_c_binding, only: c_ptr
      type(c_ptr) :: buffer
      integer :: size
      integer, optional :: ierror
    end subroutine
    integer function equal_f08_f(a, b) bind(C, name="__mpi_f08_types_MOD_mpi_comm_f08_eq_f")
      import
      type(MPI_Comm) :: a
      integer :: b
    end function
    integer function differ_f_f08(a, b) bind(C, name="__mpi_f08_types_MOD_mpi_win_f_neq_f08")
      import
      integer :: a
      type(MPI_Win) :: b
    end function
    integer function differ_f(a, b) bind(C, name="__mpi_constants_MOD_requestneq")
      integer :: a, b
    end function
    integer function comm_to_c(f) bind(C, name="__mpi_f08_types_MOD_mpi_comm_f2c")
      integer, value :: f
    end function
    subroutine status_to_f(f08, f, ierror) bind(C, name="__mpi_f08_types_MOD_mpi_status_f082f")
      import
      type(MPI_Status) :: f08
      integer :: f(MPI_STATUS_SIZE)
      integer, optional :: ierror
    end subroutine
    integer function status_of_c(c, f08) bind(C, name="MPI_Status_c2f08")
      import
      integer :: c(MPI_STATUS_SIZE)
      type(MPI_Status) :: f08
    end function
  end interface
  integer :: i, n, ierror, matrix(4, 4)
  type(MPI_Request) :: requests(3)
  type(MPI_Status) :: status
  integer(MPI_ADDRESS_KIND) :: value
  integer(MPI_COUNT_KIND) :: large = 5
  logical :: flag
  character(len=12) :: name
  procedure(MPI_Comm_copy_attr_function) :: copy
  integer :: key, words(MPI_STATUS_SIZE)
  type(c_ptr) :: address
  type(MPI_Comm) :: comm
  call MPI_Init()
  call MPI_Initialized(flag)
  if (.not. flag) error stop 'Initialized'
  if (MPI_Wtime() <= 0 .or. MPI_Wtick() /= 1d-9) error stop 'Wtime'
  if (pmpir_wtime_f08() <= 0) error stop 'pmpir_wtime_f08'
  i = 5
  matrix = reshape([(n, n = 1, 16)], [4, 4])
  call MPI_Send(i, 1, MPI_INTEGER, 0, 9, MPI_COMM_WORLD)
  call MPI_Send(matrix(:, 2), 4, MPI_INTEGER, 0, 9, MPI_COMM_WORLD, ierror)
  call MPI_Send(MPI_BOTTOM, 2, MPI_INTEGER, 0, 9, MPI_COMM_WORLD)
  call MPI_Send(i, large, MPI_INTEGER, 0, 9, MPI_COMM_WORLD)
  call mpi_send_f08ts(matrix, 16, MPI_INTEGER, 0, 9, MPI_COMM_WORLD)
  call pmpir_send_f08ts(matrix(:, 2:3), 8, MPI_INTEGER, 0, 9, MPI_COMM_WORLD)
  call mpi_send_f08ts(i, 1, MPI_INTEGER, 0, 9, MPI_COMM_WORLD)
  call mpi_send_f08ts(MPI_BOTTOM, 1, MPI_INTEGER, 0, 9, MPI_COMM_WORLD)
  call mpi_send_f08ts(matrix(2, :), 4, MPI_INTEGER, 0, 9, MPI_COMM_WORLD)
  call mpi_send_f08ts(matrix(1:2, :), 8, MPI_INTEGER, 0, 9, MPI_COMM_WORLD, ierror)
  if (ierror /= MPI_ERR_BUFFER) error stop 'no single block'
  call send(matrix, 3)
  call MPI_Allreduce(MPI_IN_PLACE, i, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Recv(i, 1, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call MPI_Recv(i, 1, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status)
  if (status%MPI_SOURCE /= 3 .or. status%MPI_TAG /= 4 .or. status%MPI_ERROR /= 5) error stop 'Recv'
  call status_to_f(status, words, ierror)
  if (words(3) /= 3 .or. words(5) /= 5 .or. ierror /= MPI_SUCCESS) error stop 'status_f082f'
  words(4) = 7
  if (status_of_c(words, status) /= MPI_SUCCESS .or. status%MPI_TAG /= 7) error stop 'Status_c2f08'
  comm = MPI_COMM_SELF
  if (equal_f08_f(comm, comm%MPI_VAL) /= 1 .or. equal_f08_f(comm, MPI_COMM_WORLD%MPI_VAL) /= 0) error stop 'comm_f08_eq_f'
  if (differ_f_f08(4, MPI_Win(4)) /= 0 .or. differ_f_f08(4, MPI_Win(5)) /= 1) error stop 'win_f_neq_f08'
  if (differ_f(4, 4) /= 0 .or. differ_f(4, 5) /= 1 .or. comm_to_c(6) /= 6) error stop 'requestneq'
  call pmpir_buffer_detach_f08(address, n)
  call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE)
  call MPI_Waitany(3, requests, i, status)
  if (i /= 1) error stop 'Waitany'
  call MPI_Get_processor_name(name, n)
  if (n /= 4 .or. name /= 'host        ') error stop 'Get_processor_name'
  call MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, key, 1_MPI_ADDRESS_KIND)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag)
  if (value /= 42) error stop 'MPI_TAG_UB'
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [0], MPI_UNWEIGHTED, 0, [0], MPI_WEIGHTS_EMPTY, &
    MPI_INFO_NULL, .true., comm)
  if (MPI_COMM_WORLD == MPI_COMM_SELF .or. .not. MPI_COMM_WORLD /= MPI_COMM_SELF) error stop 'comparison'
  call MPI_Finalize()
contains
  subroutine send(array, column)
    integer, intent(in) :: array(:, :), column
    call mpi_send_f08ts(array(:, column:), 8, MPI_INTEGER, 0, 9, MPI_COMM_WORLD)
  end subroutine
end program

subroutine copy(oldcomm, comm_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
  use mpi_f08
  implicit none
  type(MPI_Comm) :: oldcomm
  integer :: comm_keyval, ierror
  integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
  logical :: flag
  flag = .true.
  attribute_val_out = attribute_val_in + extra_state
  ierror = MPI_SUCCESS
end subroutine
`

const f08Calls = `abi 1
Init
Initialized
Send 5 count 1 tag 9
Send 5 count 4 tag 9
Send bottom count 2 tag 9
Send_c
Send 1 count 16 tag 9
Send 5 count 8 tag 9
Send 5 count 1 tag 9
Send bottom count 1 tag 9
Comm_call_errhandler
Comm_call_errhandler
Send 9 count 8 tag 9
Allreduce in place
Recv ignore
Recv
Buffer_detach
Waitall ignore
Waitany
Get_processor_name
Comm_create_keyval
Comm_dup code 0 flag 1 out 21474836481
Comm_get_attr key 64400001
Dist_graph_create_adjacent 10 11 reorder 1
Finalize
`

const fortranProgram = `program main
  %s
  implicit none
  %s
  integer :: ierr, i, n, status(MPI_STATUS_SIZE), requests(3), indices(3), newcomm, key, types(2), lengths(2), displacements(2)
  integer(kind=MPI_ADDRESS_KIND) :: value, state
  logical :: flag
  character(len=12) :: name
  character(len=8) :: arguments(3), commands(2), lists(2, 2)
  external :: copy
  call MPI_Init(ierr)
  call MPI_Initialized(flag, ierr)
  if (.not. flag .or. ierr /= MPI_SUCCESS) error stop 'Initialized'
  if (MPI_Wtime() <= 0 .or. MPI_Wtick() /= 1d-9) error stop 'Wtime'
  i = 5
  call MPI_Send(i, 1, MPI_INTEGER, 0, 9, MPI_COMM_WORLD, ierr)
  call MPI_Send(MPI_BOTTOM, 2, MPI_INTEGER, 0, 9, MPI_COMM_WORLD, ierr)
  call MPI_Allreduce(MPI_IN_PLACE, i, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call MPI_Recv(i, 1, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call MPI_Recv(i, 1, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status, ierr)
  if (status(MPI_SOURCE) /= 3 .or. status(MPI_TAG) /= 4 .or. status(MPI_ERROR) /= 5) error stop 'Recv'
  call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE, ierr)
  call MPI_Waitany(3, requests, i, status, ierr)
  if (i /= 1) error stop 'Waitany'
  call MPI_Testany(3, requests, i, flag, status, ierr)
  if (i /= MPI_UNDEFINED .or. .not. flag) error stop 'Testany'
  call MPI_Waitsome(3, requests, n, indices, MPI_STATUSES_IGNORE, ierr)
  if (n /= 2 .or. indices(1) /= 1 .or. indices(2) /= 3) error stop 'Waitsome'
  indices = 7
  call MPI_Buffer_detach(indices(2), n, ierr)
  call MPI_Comm_detach_buffer(MPI_COMM_WORLD, indices(2), n, ierr)
  if (any(indices /= 7)) error stop 'a buffer that is detached'
  call MPI_Get_processor_name(name, n, ierr)
  if (n /= 4 .or. name /= 'host        ') error stop 'Get_processor_name'
  call MPI_Comm_set_name(MPI_COMM_WORLD, ' the world  ', ierr)
  call MPI_Info_set(MPI_INFO_NULL, ' key ', ' a value ', ierr)
  call MPI_Info_get(MPI_INFO_NULL, 'key ', 10, name, flag, ierr)
  if (name /= 'value       ' .or. .not. flag) error stop 'Info_get'
  n = 12
  call MPI_Info_get_string(MPI_INFO_NULL, 'key ', n, name, flag, ierr)
  if (n /= 5 .or. name /= 'value') error stop 'Info_get_string'
  state = 1
  call MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, key, state, ierr)
  value = 21474836480_MPI_ADDRESS_KIND
  call MPI_Comm_set_attr(MPI_COMM_WORLD, key, value, ierr)
  value = 0
  call MPI_Comm_get_attr(MPI_COMM_WORLD, key, value, flag, ierr)
  if (value /= 21474836480_MPI_ADDRESS_KIND) error stop 'Comm_get_attr'
  call MPI_Comm_dup(MPI_COMM_WORLD, newcomm, ierr)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierr)
  if (value /= 42) error stop 'MPI_TAG_UB'
  lengths = 1
  displacements = [0, -8]
  types = MPI_INTEGER
  call MPI_Type_struct(2, lengths, displacements, types, i, ierr)
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [0], MPI_UNWEIGHTED, 0, [0], MPI_WEIGHTS_EMPTY, &
    MPI_INFO_NULL, .true., i, ierr)
  arguments = [character(len=8) :: '-n', 'two 2', ' ']
  call MPI_Comm_spawn('./program ', arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, i, MPI_ERRCODES_IGNORE, ierr)
  commands = [character(len=8) :: 'a', 'b']
  lists(:, 1) = [character(len=8) :: 'of a', 'of b']
  lists(:, 2) = ' '
  call MPI_Comm_spawn_multiple(2, commands, lists, [1, 1], [MPI_INFO_NULL, MPI_INFO_NULL], &
    0, MPI_COMM_SELF, i, MPI_ERRCODES_IGNORE, ierr)
  call MPI_Finalize(ierr)
end program

subroutine copy(comm, key, extra, value_in, value_out, flag, ierr)
  implicit none
  integer :: comm, key, ierr
  integer(8) :: extra, value_in, value_out
  logical :: flag
  flag = .true.
  value_out = value_in + extra
  ierr = 0
end subroutine
`

const fortranCalls = `abi 1
Init
Initialized
Send 5 count 1 tag 9
Send bottom count 2 tag 9
Allreduce in place
Recv ignore
Recv
Waitall ignore
Waitany
Testany
Waitsome
Buffer_detach
Comm_detach_buffer
Get_processor_name
Comm_set_name [ the world]
Info_set [key] [a value]
Info_get [key] 10
Info_get_string 13
Comm_create_keyval
Comm_set_attr 21474836480
Comm_get_attr key 4d
Comm_dup code 0 flag 1 out 21474836481
Comm_get_attr key 64400001
Type_struct 0 -8
Dist_graph_create_adjacent 10 11 reorder 1
Comm_spawn [./program] [-n] [two 2] end
Comm_spawn_multiple [a] [b] [of a] [of b]
Finalize
`
