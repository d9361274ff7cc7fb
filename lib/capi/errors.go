package capi

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// Error classes that the standard defines and package mpi lacks.
const (
	errUnsupported mpi.Class = 1000 + iota
	errInfoKey
	errInfoValue
	errInfoNoKey
	errName
	errSession
	errConversion
)

var extraClassNames = map[mpi.Class]string{
	errUnsupported: "ERR_UNSUPPORTED_OPERATION", errInfoKey: "ERR_INFO_KEY", errInfoValue: "ERR_INFO_VALUE",
	errInfoNoKey: "ERR_INFO_NOKEY", errName: "ERR_NAME",
	errSession: "ERR_SESSION", errConversion: "ERR_CONVERSION",
}

// callError is returned for an error that this package itself has detected.
type callError struct {
	class mpi.Class
	text  string
}

func (e *callError) Error() string { return e.text }

// errorf returns an error of a class.
func errorf(class mpi.Class, format string, args ...any) error {
	return &callError{class, fmt.Sprintf(format, args...)}
}

// A failure is a panic value that ends a call early with an error. It never leaves this package, because
// attempt recovers it.
type failure struct{ err error }

// failf returns a failure with an error of the given class.
func failf(class mpi.Class, format string, args ...any) failure {
	return failure{errorf(class, format, args...)}
}

// check ends the call if err is not nil.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must returns v, or ends the call if err is not nil.
func must[T any](v T, err error) T {
	check(err)
	return v
}

// attempt calls f. If a failure ends f, attempt returns its error, otherwise nil.
func attempt(f func()) (err error) {
	defer recoverFailure(&err)
	f()
	return nil
}

// recoverFailure recovers a failure and stores its error in err. It must be deferred.
func recoverFailure(err *error) {
	if r := recover(); r != nil {
		f, ok := r.(failure)
		if !ok {
			panic(r)
		}
		*err = f.err
	}
}

// classOf returns the class of a call's error.
func classOf(err error) mpi.Class {
	if own, ok := errors.AsType[*callError](err); ok {
		return own.class
	}
	return mpi.ClassOf(err)
}

// codes maps errors to error codes. A code is either a class, with the number of the error's text in the upper
// bits, or a class or code added by the program.
type codes struct {
	mu sync.Mutex
	// classes maps each class to its number in the ABI. names maps these numbers to names.
	classes map[mpi.Class]int
	names   map[int]string
	// texts holds the texts of the most recent errors. Text n is at index n modulo the length.
	texts    [maxTexts]string
	lastText int
	// addedTexts maps the codes that the program has added to their texts, and classOf maps these codes to their
	// classes. codeCounts holds the number of codes in each class.
	addedTexts map[int]string
	classOf    map[int]int
	codeCounts map[int]int
	nextAdded  int
}

const (
	// classBits is the number of lower bits of a code that hold its class. maxTexts limits the number of errors whose
	// texts a program can still query.
	classBits = 8
	maxTexts  = 1 << 10
	// maxText is the value of MPI_MAX_ERROR_STRING in both ABIs, including the terminating 0.
	maxText = 512
)

// newCodes assigns the ABI's numbers to classes. Codes that the program adds follow after MPI_ERR_LASTCODE.
func newCodes(a *abi) *codes {
	c := &codes{classes: map[mpi.Class]int{}, names: map[int]string{}, addedTexts: map[int]string{},
		classOf:    map[int]int{},
		codeCounts: map[int]int{}}
	for class := mpi.Success; class <= mpi.ErrKeyval; class++ {
		if name, ok := strings.CutPrefix(class.String(), "MPI_"); ok {
			c.addClass(class, name, a)
		}
	}
	for class, name := range extraClassNames {
		c.addClass(class, name, a)
	}
	// All classes of the standard have names, even if the library never returns them.
	for name, number := range a.constants {
		if (strings.HasPrefix(name, "ERR_") || strings.HasPrefix(name, "T_ERR_")) && name != "ERR_LASTCODE" {
			c.names[int(number)] = "MPI_" + name
		}
	}
	c.names[c.classes[mpi.Success]] = "MPI_SUCCESS: no error"
	c.nextAdded = lastCode(a) + 1
	return c
}

// lastCode returns the largest code of the library itself. MPI_LASTUSEDCODE has this value until the program
// adds a code.
func lastCode(a *abi) int {
	return max(int(a.constants["ERR_LASTCODE"]), maxTexts<<classBits|1<<classBits-1)
}

func (c *codes) addClass(class mpi.Class, name string, a *abi) {
	number, ok := a.constants[name]
	if !ok { // the class is newer than the ABI
		number = a.constants["ERR_OTHER"]
	}
	c.classes[class] = int(number)
}

// code returns the code of an error, and stores its text.
func (c *codes) code(err error) int {
	if err == nil {
		return 0
	}
	var fixed *codedError
	if errors.As(err, &fixed) {
		return fixed.code
	}
	class := classOf(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	number, ok := c.classes[class]
	if !ok {
		number = c.classes[mpi.ErrOther]
	}
	c.lastText = c.lastText%(maxTexts-1) + 1
	c.texts[c.lastText] = err.Error()
	return c.lastText<<classBits | number
}

// codedError is an error whose code is already known.
type codedError struct {
	code int
	text string
}

func (e *codedError) Error() string { return e.text }

// userError returns the error that represents a user callback's non-zero return code.
func userError(code int) error {
	return &codedError{code, fmt.Sprintf("a callback of the program returned error %d", code)}
}

// classOfCode returns the class of a code.
func (c *codes) classOfCode(code int) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if class, ok := c.classOf[code]; ok {
		return class, true
	}
	if _, ok := c.names[code]; ok {
		return code, true
	}
	class := code & (1<<classBits - 1)
	_, ok := c.names[class]
	return class, ok && code >= 0 && code>>classBits < maxTexts
}

// remove removes a code or class added by the program.
func (c *codes) remove(code int) {
	delete(c.addedTexts, code)
	delete(c.classOf, code)
}

// text returns the text of a code.
func (c *codes) text(code int) (string, bool) {
	class, ok := c.classOfCode(code)
	if !ok {
		return "", false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if text, ok := c.addedTexts[code]; ok {
		return text, true
	}
	if n := code >> classBits; n > 0 && n < maxTexts && c.texts[n] != "" && code != class {
		return c.texts[n], true
	}
	return c.names[class], true
}
