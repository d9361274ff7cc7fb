//go:build !unix

package privatedir

import (
	"io/fs"
	"os"
)

// Output creates the file that a user has named, or empties the one that exists, for writing.
func Output(path string, mode fs.FileMode) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
}
