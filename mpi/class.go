package mpi

import (
	"context"
	"errors"
	"fmt"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// Class is an error class of the MPI standard. errors.Is(err, ErrTruncate) reports whether err has that class. The
// numbers match Open MPI's.
type Class int //nolint:errname // the standard calls it a class

// The error classes.
const (
	Success     Class = iota //nolint:errname // the standard's name, and no error
	ErrBuffer                // overlapping buffers; for buffered sends, no buffer or not enough space
	ErrCount                 // a number of elements that cannot be sent or received
	ErrType                  // a datatype that is invalid here
	ErrTag                   // a tag that does not exist, or that the wire cannot carry
	ErrComm                  // a communicator that does not exist, or that the wire cannot carry
	ErrRank                  // a rank that does not exist
	ErrRequest               // a request that does not allow the call
	ErrRoot                  // a root that does not exist
	ErrGroup                 // a group that is invalid here
	ErrOp                    // an operation that is invalid here
	ErrTopology              // a topology that is invalid here
	ErrDims                  // dimensions that are invalid here
	ErrArg                   // any other argument
	ErrUnknown               // an error of unknown kind
	ErrTruncate              // a message longer than its buffer
	ErrOther                 // see the error's text
	ErrIntern                // a bug in this library or below
	ErrInStatus              // see the errors of the statuses
	ErrPending               // a request that is not done
)

// Error classes with higher numbers, which also match Open MPI's.
const (
	ErrNoMem  Class = 34 // memory is exhausted, or a limit on operations or messages is reached
	ErrKeyval Class = 36 // a keyval that does not exist
)

// classNames holds the name and a description of each class.
var classNames = [...][2]string{
	{"MPI_SUCCESS", "no error"},
	{"MPI_ERR_BUFFER", "invalid buffer, or no space for buffered sends"},
	{"MPI_ERR_COUNT", "invalid count"},
	{"MPI_ERR_TYPE", "invalid datatype"},
	{"MPI_ERR_TAG", "invalid tag"},
	{"MPI_ERR_COMM", "invalid communicator"},
	{"MPI_ERR_RANK", "invalid rank"},
	{"MPI_ERR_REQUEST", "invalid request"},
	{"MPI_ERR_ROOT", "invalid root"},
	{"MPI_ERR_GROUP", "invalid group"},
	{"MPI_ERR_OP", "invalid operation"},
	{"MPI_ERR_TOPOLOGY", "invalid topology"},
	{"MPI_ERR_DIMS", "invalid dimensions"},
	{"MPI_ERR_ARG", "invalid argument"},
	{"MPI_ERR_UNKNOWN", "unknown error"},
	{"MPI_ERR_TRUNCATE", "the message is longer than the buffer"},
	{"MPI_ERR_OTHER", "other error"},
	{"MPI_ERR_INTERN", "internal error"},
	{"MPI_ERR_IN_STATUS", "the error is in the statuses"},
	{"MPI_ERR_PENDING", "the request is pending"},
	ErrNoMem:  {"MPI_ERR_NO_MEM", "out of memory, or a limit on operations or messages is reached"},
	ErrKeyval: {"MPI_ERR_KEYVAL", "invalid keyval"},
}

// String returns the standard's name of the class.
func (c Class) String() string {
	if c < 0 || int(c) >= len(classNames) || classNames[c][0] == "" {
		return fmt.Sprintf("class(%d)", int(c))
	}
	return classNames[c][0]
}

// Error implements error, which makes a class a valid target of errors.Is.
func (c Class) Error() string {
	if c < 0 || int(c) >= len(classNames) || classNames[c][0] == "" {
		return c.String()
	}
	return c.String() + ": " + classNames[c][1]
}

// ClassOf returns the class of an error of this package. It returns Success for nil, and ErrUnknown for any other
// error.
func ClassOf(err error) Class {
	var e *Error
	var class Class
	switch {
	case err == nil:
		return Success
	case errors.As(err, &e):
		return e.Class
	case errors.As(err, &class):
		return class
	}
	return ErrUnknown
}

// deviceClasses maps the errors that a device returns to error classes.
var deviceClasses = []struct {
	err   error
	class Class
}{
	{handshake.ErrTruncated, ErrTruncate},
	{mpe.ErrRank, ErrRank},
	{mpe.ErrLength, ErrCount},
	{handshake.ErrEmpty, ErrCount},
	{handshake.ErrTooLong, ErrCount},
	{mpe.ErrTag, ErrTag},
	{mpe.ErrWildcard, ErrTag},
	{mpe.ErrComm, ErrComm},
	{op.ErrUndefined, ErrOp},
	{coll.ErrCall, ErrArg},
	{context.Canceled, ErrOther},
	{context.DeadlineExceeded, ErrOther},
	{mpe.ErrClosed, ErrOther},
	{mpe.ErrFull, ErrNoMem},
	{collective.ErrCallFailed, ErrOther},
}

// refusals maps the error class of a rejected collective call to the cause that the other ranks receive.
var refusals = map[Class]collective.FailureCause{
	ErrBuffer: collective.CauseBuffer, ErrCount: collective.CauseCount, ErrType: collective.CauseDatatype,
	ErrOp:   collective.CauseOperation,
	ErrRoot: collective.CauseRoot, ErrArg: collective.CauseArgument,
}

// failureCause returns the cause that the other ranks receive for an error of the given class.
func failureCause(class Class) collective.FailureCause {
	if cause, ok := refusals[class]; ok {
		return cause
	}
	return collective.CauseRefused
}

// deviceErrorClass returns the class of an error of the device. A collective call that one rank rejects has the same
// class on all ranks.
func deviceErrorClass(err error) Class {
	if failed, ok := errors.AsType[*collective.CallFailedError](err); ok {
		for class, cause := range refusals {
			if cause == failed.Cause {
				return class // the same class as on the rank that rejected the call
			}
		}
	}
	for _, d := range deviceClasses {
		if errors.Is(err, d.err) {
			return d.class
		}
	}
	return ErrOther
}
