package attach

import (
	"sync"

	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// awaited lists, in shared memory, the operations for which callers sleep, so that the daemon can diagnose hangs. A
// caller that still polls is not listed, because most operations complete while their callers poll. A caller that
// sleeps until any of several operations completes (Waitany, Waitsome) lists none of them: the diagnosis takes each
// listed operation for one without which the caller cannot continue, and would be certain of a cycle that another of
// the operations can end.
type awaited struct {
	mu    sync.Mutex
	words *wire.Awaited // in shared memory; nil without rings, and after the end of the connection
}

// add lists an operation while its caller sleeps. The caller must pass the result to remove.
func (a *awaited) add(id uint64) (word int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.words == nil {
		return -1
	}
	return a.words.Add(id)
}

// remove takes an operation off the list. word is the result of add.
func (a *awaited) remove(word int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.words != nil {
		a.words.Remove(word)
	}
}

// close sets the field words to nil before the shared memory is unmapped.
func (a *awaited) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.words = nil
}
