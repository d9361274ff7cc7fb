package capi

import (
	_ "embed"
	"strconv"
	"strings"
)

// kind is a kind of handle.
type kind int

const (
	kindComm kind = iota
	kindGroup
	kindDatatype
	kindOp
	kindRequest
	kindErrhandler
	kindInfo
	kindKeyval
	kindMessage
	kindSession
	numKinds
)

var kindNames = [numKinds]string{"communicator", "group", "datatype", "operation", "request", "error handler", "info",
	"key", "message", "session"}

// abi describes the handles, statuses and constants that the callers of a library have been compiled with.
type abi struct {
	constants map[string]int64
	// handleLen is the length of a handle in bytes. In all ABIs, keyvals are ints.
	handleLen int
	// firstHandle is the handle of the first object that a program makes. Later objects get the handles that follow.
	firstHandle [numKinds]uint64
	// null holds the null handle of each kind.
	null [numKinds]uint64
	// status describes the layout of MPI_Status.
	status statusLayout

	anySource, procNull, root, anyTag, undefined int
	inPlace                                      uintptr
	statusIgnore, statusesIgnore                 uintptr
}

// statusLayout holds the size and field offsets of a status.
type statusLayout struct {
	size, source, tag, err uintptr
	// low and high are the offsets of the two words that contain the number of bytes. The high word holds the bits from
	// 32 on, shifted left by one, because its bit 0 reports whether the request was cancelled.
	low, high uintptr
}

// ABI is the number of an ABI, which its shims pass to the library.
type ABI int

// The ABIs.
const (
	MPICH    ABI = 1
	Standard ABI = 2
)

// Tables from which lib/gen makes the headers of the ABIs.
//
//go:embed abi/mpich.txt
var mpichTable string

//go:embed abi/standard.txt
var standardTable string

// constants returns the constants in an ABI's table by name, without the prefix MPI_. Handles of type int are
// sign-extended.
func constants(table string) map[string]int64 {
	list, ints := make(map[string]int64, 512), map[string]bool{}
	for line := range strings.Lines(table) {
		typ, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, value, _ := strings.Cut(rest, " ")
		if typ == "handle" {
			ints[name] = value == "int"
		} else if v, err := strconv.ParseInt(value, 0, 64); err == nil {
			// All other lines are comments, functions, and C integer types.
			if ints[typ] {
				v = int64(int32(v))
			}
			list[name] = v
		}
	}
	return list
}

// newABI returns the handles and constants of an ABI, and the layout of its status, as its mpi.h defines them.
func newABI(which ABI) *abi {
	a := &abi{}
	names := [numKinds]string{"COMM_NULL", "GROUP_NULL", "DATATYPE_NULL", "OP_NULL", "REQUEST_NULL", "ERRHANDLER_NULL",
		"INFO_NULL", "KEYVAL_INVALID", "MESSAGE_NULL", "SESSION_NULL"}
	switch which {
	case MPICH:
		a.constants, a.handleLen = constants(mpichTable), 4
		// Bits 26 to 29 contain the kind. Bits 30 and 31 mark dynamically allocated objects. The first sixteen
		// datatypes are the standard's pairs.
		for k, bits := range [numKinds]uint64{1, 2, 3, 6, 11, 5, 7, 9, 11, 14} {
			a.firstHandle[k] = 2<<30 | bits<<26
		}
		a.firstHandle[kindDatatype] += 16
		a.firstHandle[kindMessage] += 1 << 24
		a.status = statusLayout{size: 20, low: 0, high: 4, source: 8, tag: 12, err: 16}
	default:
		a.constants, a.handleLen = constants(standardTable), 8
		for k := range a.firstHandle {
			a.firstHandle[k] = 1 << 12 // constants are lower
		}
		a.status = statusLayout{size: 32, source: 0, tag: 4, err: 8, low: 12, high: 16}
	}
	for k, name := range names {
		a.null[k] = a.handle(kind(k), a.constants[name])
	}
	a.anySource, a.procNull, a.root = int(a.constants["ANY_SOURCE"]), int(a.constants["PROC_NULL"]),
		int(a.constants["ROOT"])
	a.anyTag, a.undefined = int(a.constants["ANY_TAG"]), int(a.constants["UNDEFINED"])
	a.inPlace = uintptr(a.constants["IN_PLACE"])
	a.statusIgnore, a.statusesIgnore = uintptr(a.constants["STATUS_IGNORE"]), uintptr(a.constants["STATUSES_IGNORE"])
	return a
}

// handle returns a handle passed as an argument. If the ABI has int handles, they arrive sign-extended.
func (a *abi) handle(k kind, v int64) uint64 {
	if a.handleLen == 4 || k == kindKeyval {
		return uint64(uint32(v))
	}
	return uint64(v)
}
