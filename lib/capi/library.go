package capi

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/internal/pmi"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
	"github.com/zrlmpi/zrlmpid/mpi/job"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Callbacks call functions of the program, which are given by their addresses. Handles are those of the ABI.
type Callbacks interface {
	// Reduce calls a function of MPI_Op_create.
	Reduce(f, in, inout unsafe.Pointer, count int64, wide bool, datatype uint64)
	// Copy and Delete call functions of attributes, and return what they do.
	Copy(f unsafe.Pointer, handle uint64, keyval int, extra, value unsafe.Pointer) (to unsafe.Pointer, keep bool, code int)
	Delete(f unsafe.Pointer, handle uint64, keyval int, value, extra unsafe.Pointer) (code int)
	// Handle calls an error handler.
	Handle(f unsafe.Pointer, handle uint64, code int)
	// GeneralQuery, GeneralFree and GeneralCancel call the functions of a generalized request.
	GeneralQuery(f, extra, status unsafe.Pointer) (code int)
	GeneralFree(f, extra unsafe.Pointer) (code int)
	GeneralCancel(f, extra unsafe.Pointer, complete bool) (code int)
	// LongDouble carries out an operation of the standard on numbers that Go has not, or returns false.
	LongDouble(operation, datatype string, in, inout unsafe.Pointer, count int64) bool
	// Flush writes what the program has printed.
	Flush()
	// HandlersOnStack makes the program's signal handlers run on alternate stacks: Go's are too small for them.
	HandlersOnStack()
	// AtExit has Library.Exit called when the program ends, which is called once.
	AtExit()
	// Allocate returns memory of C, or nil, and Free frees it.
	Allocate(bytes int64) unsafe.Pointer
	Free(p unsafe.Pointer)
}

// Library is MPI for the callers of one ABI.
type Library struct {
	which ABI
	// mixed: the process has loaded a library of another ABI as well.
	mixed atomic.Bool
	abi   *abi
	calls []numbered
	codes *codes
	back  Callbacks

	comms       *table[comm]
	groups      *table[group]
	types       *table[dtype]
	ops         *table[operation]
	requests    *table[request]
	errhandlers *table[errhandler]
	infos       *table[info]
	messages    *table[message]
	sessions    *table[session]

	keyvals keyvals
	tools   tools
	numbers fortranNumbers
	fixed   fixed

	world, self *comm
	// buffer is the rank's buffer of MPI_Buffer_attach.
	buffer   sendBuffer
	launcher *pmi.Client
	// spare are *args for later calls.
	spare sync.Pool
	// phase is that of the rank, which begins with the first of its users, MPI_Init and sessions, and ends with the last.
	phase atomic.Int32
	mu    sync.Mutex
	users int
	// sessioned: there has been a session. The rank waits for another user then, when the last one has ended, until the process ends.
	sessioned atomic.Bool
	atExit    sync.Once
	// inited is the phase between MPI_Init and MPI_Finalize.
	inited  atomic.Int32
	threads int
	// errors is where the text of a fatal error goes, and exit ends the process.
	errors io.Writer
	exit   func(code int)
	// start opens the rank's device.
	start func(l *Library) (mpe.Device, error)
	// bytes is a datatype of one byte, and named has the handles of the ABI's datatypes.
	bytes *datatype.Type
	named map[*datatype.Type]uint64
	// line is set for a program for upstream's CPU library.
	line *line
	// initial is the error handler of calls without an object, and of new worlds.
	initial *errhandler
}

// The phases of a program.
const (
	before int32 = iota
	running
	finalized
)

// New returns the library for an ABI.
func New(which ABI, back Callbacks) *Library {
	a := newABI(which)
	l := &Library{
		which: which, abi: a, calls: callTable(), codes: newCodes(a), back: back, errors: os.Stderr, exit: os.Exit, start: startFromEnvironment,
		comms: newTable[comm](a, kindComm), groups: newTable[group](a, kindGroup), types: newTable[dtype](a, kindDatatype),
		ops: newTable[operation](a, kindOp), requests: newTable[request](a, kindRequest),
		errhandlers: newTable[errhandler](a, kindErrhandler), infos: newTable[info](a, kindInfo),
		messages: newTable[message](a, kindMessage), sessions: newTable[session](a, kindSession),
	}
	l.nameDatatypes()
	l.nameOperations()
	l.nameErrhandlers()
	l.nameGroups()
	l.nameInfos()
	l.nameFixed()
	return l
}

// Loaded notes that the process has loaded the library of an ABI. It cannot be a rank if that is not the one of New:
// the names of the functions are the same, so that calls of parts that were compiled for one ABI reach the other one.
func (l *Library) Loaded(which ABI) {
	if which != l.which {
		l.mixed.Store(true)
	}
}

// implementation is a call: it decodes its arguments and writes its results. It fails by a panic with a failure.
type implementation func(*args)

// implemented are all calls that there are, by their names without MPI_, of which each file adds its own.
var implemented = map[string]implementation{}

// add adds the calls of a file. One that ends with _c is the call without that, with wide counts, unless it is
// named itself.
func add(calls map[string]implementation) struct{} {
	for name, f := range calls {
		implemented[name] = f
	}
	return struct{}{}
}

// numbered is a call by its number.
type numbered struct {
	name string
	wide bool
	do   implementation
	// frequent is which of the frequent calls it is, or seldom.
	frequent frequentCall
	// anytime: it may be called before Init and after Finalize.
	anytime bool
}

// anytime are the calls that need no running rank, besides those whose names begin with T_.
var anytime = map[string]bool{
	"Init": true, "Session_init": true, "Init_thread": true, "Initialized": true, "Finalized": true, "Get_version": true, "Get_library_version": true,
	"Abort": true, "Pcontrol": true, "Get_address": true, "Address": true, "Aint_add": true, "Aint_diff": true,
	"Error_class": true, "Error_string": true, "Add_error_class": true, "Add_error_code": true, "Add_error_string": true,
	"Remove_error_class": true, "Remove_error_code": true, "Remove_error_string": true,
	"Info_create": true, "Info_create_env": true, "Info_delete": true, "Info_dup": true, "Info_free": true, "Info_get": true, "Info_get_nkeys": true,
	"Info_get_nthkey": true, "Info_get_string": true, "Info_get_valuelen": true, "Info_set": true, "Query_thread": true,
	"Abi_get_version": true, "Abi_get_info": true, "Get_hw_resource_info": true, "Session_create_errhandler": true, "Errhandler_free": true,
	"Is_thread_main": true, "Status_set_cancelled": true, "Test_cancelled": true,
	"Status_get_source": true, "Status_get_tag": true, "Status_get_error": true, "Status_set_source": true, "Status_set_tag": true, "Status_set_error": true,
	"Alloc_mem": true, "Free_mem": true,
}

// functions is the table of the standard's functions that lib/gen makes the shims from. The number of a call is its place there.
//
//go:embed functions.txt
var functions string

// callTable returns all calls, in the order of the table. It is made when the first library is.
var callTable = sync.OnceValue(func() []numbered {
	var list []numbered
	for line := range strings.Lines(functions) {
		name, _, isCall := strings.Cut(line, "(")
		if !isCall || line[0] == '#' {
			continue
		}
		c := numbered{name: name, do: implemented[name], anytime: anytime[name] || strings.HasPrefix(name, "T_")}
		if base, wide := strings.CutSuffix(name, "_c"); wide && c.do == nil {
			c.wide, c.do = true, implemented[base]
		}
		if conversion(name) {
			c.anytime = true
			if c.do == nil {
				c.do = convert
			}
		}
		c.frequent = frequentCalls[strings.TrimSuffix(name, "_c")]
		list = append(list, c)
	}
	return list
})

// Call carries out a call of the standard, and returns its error code. args are as many arguments as it has, at least one.
func (l *Library) Call(number int, list unsafe.Pointer) int {
	if uint(number) >= uint(len(l.calls)) {
		return l.codes.code(errorf(mpi.ErrIntern, "there is no call %d: the library was built for another version of its table", number))
	}
	c := &l.calls[number]
	if l.line == nil {
		return l.carryOut(c, list)
	}
	l.line.watch.enter(c)
	code := l.carryOut(c, list)
	l.line.watch.exit()
	return code
}

func (l *Library) carryOut(c *numbered, list unsafe.Pointer) int {
	if c.frequent != seldom && l.phase.Load() == running {
		a := args{l: l, list: (*[maxArgs]uint64)(list), numbered: c, wide: c.wide} // on the stack, as no function is called by its address
		done, err := a.usual()
		switch {
		case err != nil:
			return l.raise(&a, err)
		case done:
			return 0
		}
	}
	a, _ := l.spare.Get().(*args)
	if a == nil {
		a = &args{l: l, operands: new(operands)}
	}
	a.list, a.numbered, a.wide = (*[maxArgs]uint64)(list), c, c.wide
	err := a.refused()
	if err == nil {
		err = a.run()
	}
	code := 0
	switch {
	case err == nil:
	case a.quiet:
		code = l.codes.code(err)
	default:
		code = l.raise(a, err)
	}
	o := a.operands
	if o.comm != nil {
		*o = operands{}
	}
	*a = args{l: l, operands: o} // which keeps no pointer of the program
	l.spare.Put(a)
	return code
}

// run executes the call, and returns its error.
func (a *args) run() (err error) {
	defer catch(&err)
	a.do(a)
	return nil
}

// refused is the error of a call that cannot be carried out now, or at all.
func (a *args) refused() error {
	switch phase := a.l.phase.Load(); {
	case a.do == nil:
		return errorf(errUnsupported, "MPI_%s is not supported", a.name)
	case phase != running && !a.anytime:
		return tooEarly(a.name, phase)
	}
	return nil
}

func tooEarly(name string, phase int32) error {
	if phase == before {
		return errorf(mpi.ErrOther, "MPI_%s was called before MPI_Init", name)
	}
	return errorf(mpi.ErrOther, "MPI_%s was called after MPI_Finalize", name)
}

// raise has the error handler of the call's communicator handle an error, and returns its code.
func (l *Library) raise(a *args, err error) int {
	code := l.codes.code(err)
	if strings.HasPrefix(a.name, "File_") { // the error handler of files is MPI_ERRORS_RETURN (MPI 4.1, 14.7)
		return code
	}
	h, handle := l.initial, l.abi.null[kindComm]
	switch c := a.comm; {
	case c != nil:
		h, handle = c.handler(), c.handle
	case a.handler != nil:
		h, handle = a.handler, a.handlerOf
	case l.world != nil:
		h, handle = l.world.handler(), l.world.handle
	}
	switch h.does {
	case returns:
	case callsFunction:
		l.back.Handle(h.function, handle, code)
	default:
		l.fatal(a.name, err, code)
	}
	return code
}

// fatal ends the job because of an error that no handler returns.
func (l *Library) fatal(name string, err error, code int) {
	who := "a process without a rank"
	if l.world != nil {
		who = fmt.Sprintf("rank %d of %d", l.world.Rank(), l.world.Size())
	}
	fmt.Fprintf(l.errors, "zrlmpi: %s: MPI_%s failed, which ends the job, as MPI_ERRORS_ARE_FATAL is set: %v\n", who, name, err)
	class, _ := l.codes.classOfCode(code)
	l.abort(class)
}

// abort ends all ranks of the job.
func (l *Library) abort(code int) {
	if code&0xff == 0 {
		code = 1 // the system would take it for success
	}
	if l.launcher != nil {
		_ = l.launcher.Abort(code)
	}
	l.back.Flush()
	l.exit(code & 0xff)
}

// startFromEnvironment opens the device that the environment describes: a rank of a launcher's job, one of a
// daemon or a configuration, or the only rank of a world.
func startFromEnvironment(l *Library) (mpe.Device, error) {
	ctx := context.Background()
	config := os.Getenv(job.EnvConfig)
	if os.Getenv(job.EnvSocket) == "" && (config == "" || os.Getenv(job.EnvRank) == "") && os.Getenv(pmi.EnvFD) != "" {
		launcher, err := pmi.Connect(ctx, os.Getenv)
		if err != nil {
			return nil, err
		}
		l.launcher = launcher
		return node.Join(ctx, launcher, config)
	}
	if os.Getenv(job.EnvSocket) == "" && config == "" {
		if name, size := otherLauncher(os.Getenv); name != "" {
			return nil, fmt.Errorf("a launcher of another kind has started this program as one of %s ranks (%s is set), and it would be alone: start it with zrlctl run, mpiexec.hydra or srun --mpi=pmi2", size, name)
		}
		devices, err := node.Local(1, protocol.Extended)
		if err != nil {
			return nil, err
		}
		return devices[0], nil
	}
	return job.Device(ctx)
}

// otherLauncher finds the variable by which launchers without PMI-1 give the number of ranks, if there is more than one.
func otherLauncher(getenv func(string) string) (name, size string) {
	for _, name := range []string{"OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "SLURM_STEP_NUM_TASKS", "MV2_COMM_WORLD_SIZE"} {
		if size := getenv(name); size != "" && size != "1" && size != "0" {
			return name, size
		}
	}
	return "", ""
}
