package capi

import (
	"context"
	"fmt"
	"os"

	"github.com/zrlmpi/zrlmpid/internal/version"
	"github.com/zrlmpi/zrlmpid/mpi"
)

var _ = add(map[string]implementation{
	"Init":                (*args).init,
	"Init_thread":         (*args).initThread,
	"Initialized":         func(a *args) { a.setFlag(0, a.l.inited.Load() != before) },
	"Finalized":           func(a *args) { a.setFlag(0, a.l.inited.Load() == finalized) },
	"Finalize":            (*args).finalize,
	"Abort":               (*args).abort,
	"Query_thread":        func(a *args) { a.setInt(0, a.l.threads) },
	"Is_thread_main":      func(a *args) { a.setFlag(0, true) },
	"Get_version":         (*args).version,
	"Get_library_version": (*args).libraryVersion,
	"Get_processor_name":  (*args).processorName,
	"Pcontrol":            func(*args) {},
	"Error_class":         (*args).errorClass,
	"Error_string":        (*args).errorString,
	"Add_error_class":     (*args).addErrorClass,
	"Add_error_code":      (*args).addErrorCode,
	"Add_error_string":    (*args).addErrorString,
	"Remove_error_class":  (*args).removeErrorClass,
	"Remove_error_code":   (*args).removeErrorCode,
	"Remove_error_string": (*args).removeErrorString,
	"Get_address":         func(a *args) { a.setWord(1, int64(a.list[0])) },
	"Address":             func(a *args) { a.setWord(1, int64(a.list[0])) },
	"Aint_add":            func(a *args) { a.result(a.list[0] + a.list[1]) },
	"Aint_diff":           func(a *args) { a.result(a.list[0] - a.list[1]) },
	"Alloc_mem":           (*args).allocate,
	"Free_mem":            func(a *args) { a.l.back.Free(a.pointer(0)) },
	"Abi_get_version":     func(a *args) { a.setInt(0, 1); a.setInt(1, 0) },
})

func (a *args) init() {
	a.l.threads = int(a.l.abi.constants["THREAD_MULTIPLE"])
	check(a.l.initOnce())
}

func (a *args) initThread() {
	// All thread levels are supported, so a program gets the level that it asks for.
	c := a.l.abi.constants
	a.l.threads = max(min(a.int(2), int(c["THREAD_MULTIPLE"])), int(c["THREAD_SINGLE"]))
	check(a.l.initOnce())
	a.setInt(3, a.l.threads)
}

func (l *Library) initOnce() error {
	if !l.inited.CompareAndSwap(before, running) {
		return errorf(mpi.ErrOther, "MPI_Init was called twice")
	}
	err := l.begin()
	if err != nil {
		l.inited.Store(before)
	}
	return err
}

// begin adds a user of the rank. The first user starts the rank.
func (l *Library) begin() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.phase.Load() {
	case running:
		l.users++
		return nil
	case finalized:
		return errorf(errUnsupported, "this process has been a rank, and cannot be one again: MPI_Finalize has ended "+
			"it, as there was no session before")
	}
	if l.world != nil { // the rank was waiting for another user
		l.users = 1
		l.phase.Store(running)
		return nil
	}
	if l.mixed.Load() {
		return errorf(mpi.ErrOther,
			"this process has loaded libmpi_abi.so.1, which zrlmpicc links with, and libmpi.so.12, "+
				"which zrlmpifort and zrlmpicc -abi=mpich link with, and their handles differ: build all its parts "+
				"for one of "+
				"them; beside Fortran, those in C with zrlmpicc -abi=mpich")
	}
	l.back.HandlersOnStack()
	dev, err := l.start(l)
	if err != nil {
		return errorf(mpi.ErrOther, "this process cannot be a rank: %v", err)
	}
	world, err := mpi.New(dev)
	if err != nil {
		return err
	}
	l.open(world)
	if l.line != nil {
		l.watchOver()
	}
	l.users = 1
	l.phase.Store(running)
	return nil
}

// end removes a user of the rank. When the last user is gone, the rank ends. If the program uses sessions,
// however, the rank waits for another user, because it could not rejoin the launcher and the other ranks.
func (l *Library) end() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users--; l.users > 0 {
		return nil
	}
	if !l.sessioned.Load() {
		return l.finish()
	}
	l.phase.Store(before)
	l.atExit.Do(l.back.AtExit)
	return l.buffer.end()
}

// Exit ends a rank that is waiting for another user. It is called when the program exits.
func (l *Library) Exit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.world == nil || l.phase.Load() != before {
		return // the program did not call MPI_Finalize
	}
	if err := l.finish(); err != nil {
		fmt.Fprintf(l.errors, "zrlmpi: the end of rank %d: %v\n", l.world.Rank(), err)
	}
}

// finish ends the rank.
func (l *Library) finish() error {
	l.phase.Store(finalized)
	if l.line != nil {
		l.endLine()
	}
	return l.world.Finalize(context.Background())
}

func (a *args) finalize() {
	if now := a.l.inited.Load(); now != running {
		check(tooEarly("Finalize", now))
		return
	}
	a.comm = a.l.world
	check(a.l.close())
	a.l.inited.Store(finalized)
	check(a.l.end())
}

func (a *args) abort() {
	code := a.int(1)
	who := ""
	if w := a.l.world; w != nil {
		who = "rank " + itoa(w.Rank()) + " of " + itoa(w.Size()) + ": "
	}
	_, _ = a.l.errors.Write([]byte("zrlmpi: " + who + "MPI_Abort ends the job with code " + itoa(code) + "\n"))
	a.l.abort(code)
}

func (a *args) version() {
	a.setInt(0, int(a.l.abi.constants["VERSION"]))
	a.setInt(1, int(a.l.abi.constants["SUBVERSION"]))
}

func (a *args) libraryVersion() {
	n := a.setText(0, "zrlmpi "+version.String(), int(a.l.abi.constants["MAX_LIBRARY_VERSION_STRING"]))
	a.setInt(1, n)
}

func (a *args) processorName() {
	name, err := os.Hostname()
	if err != nil {
		panic(failf(mpi.ErrOther, "the name of this host: %v", err))
	}
	a.setInt(1, a.setText(0, name, int(a.l.abi.constants["MAX_PROCESSOR_NAME"])))
}

func (a *args) errorClass() {
	class, ok := a.l.codes.classOfCode(a.int(0))
	if !ok {
		panic(failf(mpi.ErrArg, "%d is no error code", a.int(0)))
	}
	a.setInt(1, class)
}

func (a *args) errorString() {
	text, ok := a.l.codes.text(a.int(0))
	if !ok {
		panic(failf(mpi.ErrArg, "%d is no error code", a.int(0)))
	}
	a.setInt(2, a.setText(1, text, maxText))
}

func (a *args) addErrorClass() {
	c := a.l.codes
	c.mu.Lock()
	class := c.nextAdded
	c.nextAdded++
	c.added[class], c.classOf[class] = "", class
	c.mu.Unlock()
	a.setInt(0, class)
}

func (a *args) addErrorCode() {
	class, ok := a.l.codes.classOfCode(a.int(0))
	if !ok {
		panic(failf(mpi.ErrArg, "%d is no error class", a.int(0)))
	}
	c := a.l.codes
	c.mu.Lock()
	code := c.nextAdded
	c.nextAdded++
	c.added[code], c.classOf[code] = "", class
	c.codesOf[class]++
	c.mu.Unlock()
	a.setInt(1, code)
}

func (a *args) addErrorString() {
	text := a.text(1)
	c := a.l.codes
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.added[a.int(0)]; !ok {
		panic(failf(mpi.ErrArg, "%d is no error code that the program has added", a.int(0)))
	}
	c.added[a.int(0)] = text
}

// removeErrorClass removes an error class added by the program. The codes of the class must have been removed
// before.
func (a *args) removeErrorClass() {
	c, class := a.l.codes, a.int(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	if of, ok := c.classOf[class]; !ok || of != class {
		panic(failf(mpi.ErrArg, "%d is no error class that the program has added", class))
	}
	if n := c.codesOf[class]; n > 0 {
		panic(failf(mpi.ErrOther, "error class %d has %d codes: remove them first", class, n))
	}
	c.forget(class)
}

func (a *args) removeErrorCode() {
	c, code := a.l.codes, a.int(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	class, ok := c.classOf[code]
	if !ok || class == code {
		panic(failf(mpi.ErrArg, "%d is no error code that the program has added", code))
	}
	c.forget(code)
	if c.codesOf[class]--; c.codesOf[class] == 0 {
		delete(c.codesOf, class)
	}
}

func (a *args) removeErrorString() {
	c, code := a.l.codes, a.int(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.added[code] == "" {
		panic(failf(mpi.ErrArg, "%d has no text that the program has added", code))
	}
	c.added[code] = ""
}

// allocate implements MPI_Alloc_mem(size, info, baseptr).
func (a *args) allocate() {
	n := a.count(0)
	if n < 0 {
		panic(failf(mpi.ErrArg, "%d bytes", n))
	}
	p := a.l.back.Allocate(max(n, 1))
	if p == nil {
		panic(failf(mpi.ErrNoMem, "there are no %d bytes of memory", n))
	}
	a.setPointer(2, p)
}
