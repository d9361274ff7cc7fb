//go:build !unix

package privatedir

import (
	"io/fs"
	"os"
)

// Output creates a file named by the user, or truncates an existing one, and opens it for writing.
func Output(path string, mode fs.FileMode) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
}
