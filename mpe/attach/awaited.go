package attach

import (
	"sync"

	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// awaited publishes the operations that callers sleep for, so that the daemon can diagnose hangs. A caller publishes
// nothing while it polls, because most operations complete during that time.
type awaited struct {
	mu    sync.Mutex
	words *wire.Awaited // in shared memory; nil without rings, and after the end of the connection
}

// add publishes that a caller sleeps until an operation completes. The caller must pass the returned word to remove.
func (a *awaited) add(id uint64) (word int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.words == nil {
		return -1
	}
	return a.words.Add(id)
}

func (a *awaited) remove(word int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.words != nil {
		a.words.Remove(word)
	}
}

// close makes words nil before the memory is unmapped.
func (a *awaited) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.words = nil
}
