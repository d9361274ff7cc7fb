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

// Callbacks calls functions of the program by their addresses. The handles that it passes have the ABI's values.
type Callbacks interface {
	// Reduce calls a function passed to MPI_Op_create.
	Reduce(f, in, inout unsafe.Pointer, count int64, wide bool, datatype uint64)
	// Copy and Delete call the functions of an attribute's key, and return their results.
	Copy(f unsafe.Pointer, handle uint64, keyval int, extra, value unsafe.Pointer) (to unsafe.Pointer, keep bool,
		code int)
	Delete(f unsafe.Pointer, handle uint64, keyval int, value, extra unsafe.Pointer) (code int)
	// Handle calls an error handler.
	Handle(f unsafe.Pointer, handle uint64, code int)
	// GeneralQuery, GeneralFree and GeneralCancel call the functions of a generalized request.
	GeneralQuery(f, extra, status unsafe.Pointer) (code int)
	GeneralFree(f, extra unsafe.Pointer) (code int)
	GeneralCancel(f, extra unsafe.Pointer, complete bool) (code int)
	// LongDouble applies a predefined operation to numbers whose type Go lacks. It returns false if it does not support
	// the operation.
	LongDouble(operation, datatype string, in, inout unsafe.Pointer, count int64) bool
	// Flush flushes the program's standard output.
	Flush()
	// HandlersOnStack sets SA_ONSTACK for the program's signal handlers, because Go's stacks are too small for them.
	HandlersOnStack()
	// AtExit registers Library.Exit to be called when the program exits. It is called once.
	AtExit()
	// Allocate returns memory allocated by C, or nil. Free frees it.
	Allocate(bytes int64) unsafe.Pointer
	Free(p unsafe.Pointer)
}

// Library implements MPI for callers that were compiled for one ABI.
type Library struct {
	loadedABI ABI
	// abiConflict is set if the process has also loaded a library for another ABI.
	abiConflict atomic.Bool
	abi         *abi
	calls       []callEntry
	codes       *codes
	callbacks   Callbacks

	comms       *table[comm]
	groups      *table[group]
	types       *table[dtype]
	ops         *table[operation]
	requests    *table[request]
	errhandlers *table[errhandler]
	infos       *table[info]
	messages    *table[message]
	sessions    *table[session]

	keyvals      keyvals
	tools        tools
	fortranTypes fortranNumbers
	fixedAttrs   fixedAttributes

	world, self *comm
	// buffer is the send buffer that MPI_Buffer_attach has attached to the rank.
	buffer   sendBuffer
	launcher *pmi.Client
	// argsPool is a pool of *args.
	argsPool sync.Pool
	// phase is the phase of the rank, which starts with its first user (MPI_Init or a session) and ends with its last
	// user.
	phase     atomic.Int32
	mu        sync.Mutex
	userCount int
	// usedSessions is set once the program has opened a session. From then on, the rank does not end when its last
	// user is gone; it waits for another user until the process exits.
	usedSessions atomic.Bool
	atExit       sync.Once
	// initPhase records whether the program has called MPI_Init and MPI_Finalize.
	initPhase atomic.Int32
	threads   int
	// errors receives the text of fatal errors. exit ends the process.
	errors io.Writer
	exit   func(code int)
	// openRank opens the rank's device.
	openRank func(l *Library) (mpe.Device, error)
	// byteType is a datatype of one byte. typeHandles maps the ABI's datatypes to their handles.
	byteType    *datatype.Type
	typeHandles map[*datatype.Type]uint64
	// upstream is set if the program was written for upstream's CPU library.
	upstream *upstreamRank
	lessor   lessor
	// defaultHandler is the error handler for calls that have no object. It is also the initial error handler of each
	// new world.
	defaultHandler *errhandler
}

// Phases of a program.
const (
	notStarted int32 = iota
	running
	finalized
)

// New returns the library for an ABI.
func New(which ABI, back Callbacks) *Library {
	a := newABI(which)
	library := &Library{
		loadedABI: which, abi: a, calls: callTable(), codes: newCodes(a), callbacks: back, errors: os.Stderr, exit: os.Exit,
		openRank: startFromEnvironment,
		comms:    newTable[comm](a, kindComm), groups: newTable[group](a, kindGroup),
		types: newTable[dtype](a, kindDatatype),
		ops:   newTable[operation](a, kindOp), requests: newTable[request](a, kindRequest),
		errhandlers: newTable[errhandler](a, kindErrhandler), infos: newTable[info](a, kindInfo),
		messages: newTable[message](a, kindMessage), sessions: newTable[session](a, kindSession),
	}
	library.defineDatatypes()
	library.defineOperations()
	library.defineHandlers()
	library.defineGroups()
	library.defineInfos()
	library.defineFixedAttrs()
	return library
}

// Loaded records that the process has loaded the library for an ABI. If that is not the ABI passed to New, the
// process cannot be a rank: the functions of both libraries have the same names, so calls from code compiled
// for one ABI reach the other library.
func (l *Library) Loaded(which ABI) {
	if which != l.loadedABI {
		l.abiConflict.Store(true)
	}
}

// implementation implements one call: it decodes the arguments and writes the results. If the call fails, it panics
// with a failure.
type implementation func(*args)

// implemented maps the names of all implemented calls, without the prefix MPI_, to their implementations. Each
// file adds its own calls.
var implemented = map[string]implementation{}

// add adds the calls of a file. A call whose name ends in _c uses the implementation of the call without that suffix,
// but with large counts, unless it is listed itself.
func add(calls map[string]implementation) struct{} {
	for name, f := range calls {
		implemented[name] = f
	}
	return struct{}{}
}

// callEntry is an entry of the call table.
type callEntry struct {
	name        string
	largeCounts bool
	impl        implementation
	// frequent identifies a frequent call. For any other call it is infrequent.
	frequent frequentCall
	// anytime is set if the call is allowed before Init and after Finalize.
	anytime bool
}

// anytime lists the calls that do not need a running rank. Calls whose names begin with T_ do not need one
// either.
var anytime = map[string]bool{
	"Init": true, "Session_init": true, "Init_thread": true, "Initialized": true, "Finalized": true,
	"Get_version": true, "Get_library_version": true,
	"Abort": true, "Pcontrol": true, "Get_address": true, "Address": true, "Aint_add": true, "Aint_diff": true,
	"Error_class": true, "Error_string": true, "Add_error_class": true, "Add_error_code": true,
	"Add_error_string":   true,
	"Remove_error_class": true, "Remove_error_code": true, "Remove_error_string": true,
	"Info_create": true, "Info_create_env": true, "Info_delete": true, "Info_dup": true, "Info_free": true,
	"Info_get": true, "Info_get_nkeys": true,
	"Info_get_nthkey": true, "Info_get_string": true, "Info_get_valuelen": true, "Info_set": true, "Query_thread": true,
	"Abi_get_version": true, "Abi_get_info": true, "Get_hw_resource_info": true, "Session_create_errhandler": true,
	"Errhandler_free": true,
	"Is_thread_main":  true, "Status_set_cancelled": true, "Test_cancelled": true,
	"Status_get_source": true, "Status_get_tag": true, "Status_get_error": true, "Status_set_source": true,
	"Status_set_tag": true, "Status_set_error": true,
	"Alloc_mem": true, "Free_mem": true,
}

// functions is the table of the standard's functions. lib/gen makes the shims from it. The number of a call is
// its index in the table.
//
//go:embed functions.txt
var functions string

// callTable returns all calls in table order. It is built when the first library is made.
var callTable = sync.OnceValue(func() []callEntry {
	var list []callEntry
	for line := range strings.Lines(functions) {
		name, _, isCall := strings.Cut(line, "(")
		if !isCall || line[0] == '#' {
			continue
		}
		c := callEntry{name: name, impl: implemented[name], anytime: anytime[name] || strings.HasPrefix(name, "T_")}
		if base, wide := strings.CutSuffix(name, "_c"); wide && c.impl == nil {
			c.largeCounts, c.impl = true, implemented[base]
		}
		if isConversion(name) {
			c.anytime = true
			if c.impl == nil {
				c.impl = convert
			}
		}
		c.frequent = frequentCalls[strings.TrimSuffix(name, "_c")]
		list = append(list, c)
	}
	return list
})

// Call performs a call of the standard and returns its error code. list holds the arguments and has space for at least
// one result.
func (l *Library) Call(number int, list unsafe.Pointer) int {
	if uint(number) >= uint(len(l.calls)) {
		return l.codes.code(errorf(mpi.ErrIntern,
			"there is no call %d: the library was built for another version of its table", number))
	}
	c := &l.calls[number]
	if l.upstream == nil {
		return l.dispatch(c, list)
	}
	l.upstream.watchdog.enter(c)
	code := l.dispatch(c, list)
	l.upstream.watchdog.exit()
	return code
}

// dispatch performs a call: by the fast path if possible, and otherwise by its implementation, with arguments from
// argsPool.
func (l *Library) dispatch(c *callEntry, list unsafe.Pointer) int {
	if c.frequent != infrequent && l.phase.Load() == running {
		// The variable a stays on the stack, because no function is called through a pointer.
		a := args{lib: l, list: (*[maxArgs]uint64)(list), callEntry: c, largeCounts: c.largeCounts}
		done, err := a.fastPath()
		switch {
		case err != nil:
			return l.handleError(&a, err)
		case done:
			l.lease(&a)
			return 0
		}
	}
	a, _ := l.argsPool.Get().(*args)
	if a == nil {
		a = &args{lib: l, operands: new(operands)}
	}
	a.list, a.callEntry, a.largeCounts = (*[maxArgs]uint64)(list), c, c.largeCounts
	err := a.checkAllowed()
	if err == nil {
		err = a.run()
	}
	code := 0
	switch {
	case err == nil:
	case a.skipHandler:
		code = l.codes.code(err)
	default:
		code = l.handleError(a, err)
	}
	o := a.operands
	if o.comm != nil {
		*o = operands{}
	}
	*a = args{lib: l, operands: o} // do not keep pointers of the program
	l.argsPool.Put(a)
	return code
}

// run executes the call, and returns its error.
func (a *args) run() (err error) {
	defer recoverFailure(&err)
	a.impl(a)
	return nil
}

// checkAllowed returns an error if the library does not support the call, or does not allow it in the current phase.
func (a *args) checkAllowed() error {
	switch phase := a.lib.phase.Load(); {
	case a.impl == nil:
		return errorf(errUnsupported, "MPI_%s is not supported", a.name)
	case phase != running && !a.anytime:
		return phaseError(a.name, phase)
	}
	return nil
}

// phaseError returns the error of a call before the rank's start or after its end.
func phaseError(name string, phase int32) error {
	if phase == notStarted {
		return errorf(mpi.ErrOther, "MPI_%s was called before MPI_Init", name)
	}
	return errorf(mpi.ErrOther, "MPI_%s was called after MPI_Finalize", name)
}

// handleError passes an error to the error handler of the call's object, and returns the error's code.
func (l *Library) handleError(a *args, err error) int {
	code := l.codes.code(err)
	if strings.HasPrefix(a.name, "File_") { // files have the error handler MPI_ERRORS_RETURN (MPI 4.1, 14.7)
		return code
	}
	h, handle := l.defaultHandler, l.abi.null[kindComm]
	switch c := a.comm; {
	case c != nil:
		h, handle = c.handler(), c.handle
	case a.handler != nil:
		h, handle = a.handler, a.handlerOwner
	case l.world != nil:
		h, handle = l.world.handler(), l.world.handle
	}
	switch h.action {
	case actionReturn:
	case actionCall:
		l.callbacks.Handle(h.function, handle, code)
	default:
		l.fatal(a.name, err, code)
	}
	return code
}

// fatal ends the job because of an error that no error handler returns to the program.
func (l *Library) fatal(name string, err error, code int) {
	who := "a process without a rank"
	if l.world != nil {
		who = fmt.Sprintf("rank %d of %d", l.world.Rank(), l.world.Size())
	}
	fmt.Fprintf(l.errors, "zrlmpi: %s: MPI_%s failed, which ends the job, as MPI_ERRORS_ARE_FATAL is set: %v\n", who,
		name, err)
	class, _ := l.codes.classOfCode(code)
	l.abort(class)
}

// abort ends all ranks of the job.
func (l *Library) abort(code int) {
	if code&0xff == 0 {
		code = 1 // the system would treat 0 as success
	}
	if l.launcher != nil {
		_ = l.launcher.Abort(code)
	}
	l.callbacks.Flush()
	l.exit(code & 0xff)
}

// startFromEnvironment opens the device that the environment describes: a rank in a job started by a launcher, a rank
// of a daemon, a rank in a configuration or, by default, the only rank of a world.
func startFromEnvironment(library *Library) (mpe.Device, error) {
	ctx := context.Background()
	config := os.Getenv(job.EnvConfig)
	if os.Getenv(job.EnvSocket) == "" && (config == "" || os.Getenv(job.EnvRank) == "") && os.Getenv(pmi.EnvFD) != "" {
		launcher, err := pmi.Connect(ctx, os.Getenv)
		if err != nil {
			return nil, err
		}
		library.launcher = launcher
		return node.Join(ctx, launcher, config)
	}
	if os.Getenv(job.EnvSocket) == "" && config == "" {
		if name, size := otherLauncher(os.Getenv); name != "" {
			return nil, fmt.Errorf("a launcher of another kind has started this program as one of %s ranks (%s is "+
				"set), and it would be alone: start it with zrlctl run, mpiexec.hydra or srun --mpi=pmi2", size, name)
		}
		devices, err := node.StartLocal(1, protocol.Extended)
		if err != nil {
			return nil, err
		}
		return devices[0], nil
	}
	return job.Device(ctx)
}

// otherLauncher searches the environment for a variable by which a launcher without PMI-1 announces the number of
// ranks. It returns the variable's name and value if that number is greater than one.
func otherLauncher(getenv func(string) string) (name, size string) {
	for _, name := range []string{"OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "SLURM_STEP_NUM_TASKS", "MV2_COMM_WORLD_SIZE"} {
		if size := getenv(name); size != "" && size != "1" && size != "0" {
			return name, size
		}
	}
	return "", ""
}
