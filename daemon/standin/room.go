package standin

import "github.com/zrlmpi/zrlmpid/internal/anonmem"

// room returns n zero bytes, and the function that frees them. Pages that were never written use no memory.
func room(n int) (b []byte, free func()) {
	b, err := anonmem.Get(n)
	if err != nil { // out of address space, perhaps
		return make([]byte, n), func() {}
	}
	return b, func() { anonmem.Put(b) }
}
