package privatedir

import "os"

// Handle returns a descriptor of the directory, for calls that name files relative to one. The caller must close it.
func (d *Dir) Handle() (*os.File, error) {
	f, err := d.root.Open(".")
	return f, d.named(err)
}
