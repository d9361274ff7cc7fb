package privatedir

import "os"

// Descriptor returns a descriptor of the directory, for system calls with relative names. The caller must close it.
func (d *Dir) Descriptor() (*os.File, error) {
	f, err := d.root.Open(".")
	return f, d.withPath(err)
}
