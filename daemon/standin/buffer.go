package standin

import "github.com/zrlmpi/zrlmpid/internal/anonmem"

// allocBuffer returns a buffer of n zero bytes and a function that frees it. The buffer's pages use no memory until
// they are written.
func allocBuffer(n int) (b []byte, free func()) {
	b, err := anonmem.Get(n)
	if err != nil { // the address space may be exhausted
		return make([]byte, n), func() {}
	}
	return b, func() { anonmem.Put(b) }
}
