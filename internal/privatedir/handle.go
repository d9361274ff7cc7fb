package privatedir

import "os"

// Handle returns a descriptor of the directory, for system calls with relative names. The caller must close it.
func (d *Dir) Handle() (*os.File, error) {
	f, err := d.root.Open(".")
	return f, d.named(err)
}
