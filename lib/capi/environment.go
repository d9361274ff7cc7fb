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
	"Initialized":         func(a *args) { a.setFlag(0, a.lib.initPhase.Load() != notStarted) },
	"Finalized":           func(a *args) { a.setFlag(0, a.lib.initPhase.Load() == finalized) },
	"Finalize":            (*args).finalize,
	"Abort":               (*args).abort,
	"Query_thread":        func(a *args) { a.setInt(0, a.lib.threads) },
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
	"Aint_add":            func(a *args) { a.setResult(a.list[0] + a.list[1]) },
	"Aint_diff":           func(a *args) { a.setResult(a.list[0] - a.list[1]) },
	"Alloc_mem":           (*args).allocate,
	"Free_mem":            func(a *args) { a.lib.callbacks.Free(a.pointer(0)) },
	"Abi_get_version":     func(a *args) { a.setInt(0, 1); a.setInt(1, 0) },
})

func (a *args) init() {
	a.lib.threads = int(a.lib.abi.constants["THREAD_MULTIPLE"])
	check(a.lib.initOnce())
}

// initThread implements MPI_Init_thread(argc, argv, required, provided).
func (a *args) initThread() {
	// All thread levels are supported, so a program gets the level that it asks for.
	c := a.lib.abi.constants
	a.lib.threads = max(min(a.int(2), int(c["THREAD_MULTIPLE"])), int(c["THREAD_SINGLE"]))
	check(a.lib.initOnce())
	a.setInt(3, a.lib.threads)
}

// initOnce makes MPI_Init a user of the rank. After a failure, the program may try again.
func (l *Library) initOnce() error {
	if !l.initPhase.CompareAndSwap(notStarted, running) {
		return errorf(mpi.ErrOther, "MPI_Init was called twice")
	}
	err := l.addUser()
	if err != nil {
		l.initPhase.Store(notStarted)
	}
	return err
}

// addUser records that the rank has one more user, which is MPI_Init or a session. The first user starts the rank.
func (l *Library) addUser() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.phase.Load() {
	case running:
		l.userCount++
		return nil
	case finalized:
		return errorf(errUnsupported, "this process was a rank, and cannot be one again: MPI_Finalize ended "+
			"the rank, because the program had not opened a session before")
	}
	if l.world != nil { // the rank was waiting for another user
		l.userCount = 1
		l.phase.Store(running)
		return nil
	}
	if l.abiConflict.Load() {
		return errorf(mpi.ErrOther,
			"this process has loaded libmpi_abi.so.1, which zrlmpicc links with, and libmpi.so.12, "+
				"which zrlmpifort and zrlmpicc -abi=mpich link with, and their handles differ: build all its parts "+
				"for one ABI; in a program with Fortran, compile those in C with zrlmpicc -abi=mpich")
	}
	l.callbacks.HandlersOnStack()
	dev, err := l.openRank(l)
	if err != nil {
		return errorf(mpi.ErrOther, "this process cannot be a rank: %v", err)
	}
	world, err := mpi.New(dev)
	if err != nil {
		return err
	}
	l.setWorld(world)
	if l.upstream != nil {
		l.startWatchdog()
	}
	l.userCount = 1
	l.phase.Store(running)
	return nil
}

// removeUser records that the rank has one user less. The rank ends with its last user. If the program uses sessions,
// however, the rank waits for another user instead, because it could not rejoin the launcher and the other ranks after
// its end.
func (l *Library) removeUser() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.userCount--; l.userCount > 0 {
		return nil
	}
	if !l.usedSessions.Load() {
		return l.endRank()
	}
	l.phase.Store(notStarted)
	if b := l.lessor.block; b != nil { // C code must not make calls between two users
		mpi.Foreign.TakeBack(l.world.Comm, b)
	}
	l.atExit.Do(l.callbacks.AtExit)
	return l.buffer.close()
}

// Exit ends a rank that is waiting for another user. It is called when the program exits.
func (l *Library) Exit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.world == nil || l.phase.Load() != notStarted {
		return // the program did not call MPI_Finalize
	}
	if err := l.endRank(); err != nil {
		fmt.Fprintf(l.errors, "zrlmpi: rank %d did not shut down cleanly: %v\n", l.world.Rank(), err)
	}
}

// endRank ends the rank.
func (l *Library) endRank() error {
	l.phase.Store(finalized)
	if l.upstream != nil {
		l.endUpstream()
	}
	return l.world.Finalize(context.Background())
}

// finalize implements MPI_Finalize(). As the standard requires, the attributes of MPI_COMM_SELF are deleted first,
// while MPI is still usable in their callbacks.
func (a *args) finalize() {
	if now := a.lib.initPhase.Load(); now != running {
		check(phaseError("Finalize", now))
		return
	}
	a.comm = a.lib.world
	check(a.lib.clearSelf())
	a.lib.initPhase.Store(finalized)
	check(a.lib.removeUser())
}

// abort implements MPI_Abort(comm, errorcode). It ends the whole job, whatever the communicator.
func (a *args) abort() {
	code := a.int(1)
	who := ""
	if w := a.lib.world; w != nil {
		who = "rank " + itoa(w.Rank()) + " of " + itoa(w.Size()) + ": "
	}
	_, _ = a.lib.errors.Write([]byte("zrlmpi: " + who + "MPI_Abort ends the job with code " + itoa(code) + "\n"))
	a.lib.abort(code)
}

func (a *args) version() {
	a.setInt(0, int(a.lib.abi.constants["VERSION"]))
	a.setInt(1, int(a.lib.abi.constants["SUBVERSION"]))
}

func (a *args) libraryVersion() {
	n := a.setCString(0, "zrlmpi "+version.String(), int(a.lib.abi.constants["MAX_LIBRARY_VERSION_STRING"]))
	a.setInt(1, n)
}

func (a *args) processorName() {
	name, err := os.Hostname()
	if err != nil {
		panic(failf(mpi.ErrOther, "the name of this host: %v", err))
	}
	a.setInt(1, a.setCString(0, name, int(a.lib.abi.constants["MAX_PROCESSOR_NAME"])))
}

// errorClass implements MPI_Error_class(errorcode, errorclass).
func (a *args) errorClass() {
	class, ok := a.lib.codes.classOfCode(a.int(0))
	if !ok {
		panic(failf(mpi.ErrArg, "%d is not an error code", a.int(0)))
	}
	a.setInt(1, class)
}

// errorString implements MPI_Error_string(errorcode, string, resultlen).
func (a *args) errorString() {
	text, ok := a.lib.codes.text(a.int(0))
	if !ok {
		panic(failf(mpi.ErrArg, "%d is not an error code", a.int(0)))
	}
	a.setInt(2, a.setCString(1, text, maxText))
}

// addErrorClass implements MPI_Add_error_class(errorclass).
func (a *args) addErrorClass() {
	c := a.lib.codes
	c.mu.Lock()
	class := c.nextAdded
	c.nextAdded++
	c.addedTexts[class], c.classOf[class] = "", class
	c.mu.Unlock()
	a.setInt(0, class)
}

// addErrorCode implements MPI_Add_error_code(errorclass, errorcode). Classes and codes share one sequence of numbers.
func (a *args) addErrorCode() {
	class, ok := a.lib.codes.classOfCode(a.int(0))
	if !ok {
		panic(failf(mpi.ErrArg, "%d is not an error class", a.int(0)))
	}
	c := a.lib.codes
	c.mu.Lock()
	code := c.nextAdded
	c.nextAdded++
	c.addedTexts[code], c.classOf[code] = "", class
	c.codeCounts[class]++
	c.mu.Unlock()
	a.setInt(1, code)
}

// addErrorString implements MPI_Add_error_string(errorcode, string).
func (a *args) addErrorString() {
	text := a.cString(1)
	c := a.lib.codes
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.addedTexts[a.int(0)]; !ok {
		panic(failf(mpi.ErrArg, "%d is not an error code added by the program", a.int(0)))
	}
	c.addedTexts[a.int(0)] = text
}

// removeErrorClass removes an error class added by the program. The codes of the class must have been removed
// before.
func (a *args) removeErrorClass() {
	c, class := a.lib.codes, a.int(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	if of, ok := c.classOf[class]; !ok || of != class {
		panic(failf(mpi.ErrArg, "%d is not an error class added by the program", class))
	}
	if n := c.codeCounts[class]; n > 0 {
		panic(failf(mpi.ErrOther, "error class %d has %d codes: remove them first", class, n))
	}
	c.remove(class)
}

// removeErrorCode implements MPI_Remove_error_code(errorcode). A class is its own code, and only removeErrorClass
// removes it.
func (a *args) removeErrorCode() {
	c, code := a.lib.codes, a.int(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	class, ok := c.classOf[code]
	if !ok || class == code {
		panic(failf(mpi.ErrArg, "%d is not an error code added by the program", code))
	}
	c.remove(code)
	if c.codeCounts[class]--; c.codeCounts[class] == 0 {
		delete(c.codeCounts, class)
	}
}

// removeErrorString implements MPI_Remove_error_string(errorcode).
func (a *args) removeErrorString() {
	c, code := a.lib.codes, a.int(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.addedTexts[code] == "" {
		panic(failf(mpi.ErrArg, "%d has no text added by the program", code))
	}
	c.addedTexts[code] = ""
}

// allocate implements MPI_Alloc_mem(size, info, baseptr).
func (a *args) allocate() {
	n := a.count(0)
	if n < 0 {
		panic(failf(mpi.ErrArg, "%d bytes", n))
	}
	p := a.lib.callbacks.Allocate(max(n, 1))
	if p == nil {
		panic(failf(mpi.ErrNoMem, "%d bytes of memory are not available", n))
	}
	a.setPointer(2, p)
}
