// Package bundle creates the file to attach to a bug report: information about a daemon and its host, without secrets.
package bundle

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
)

// Part is a file of a bundle.
type Part struct {
	Name string
	// Description describes the file as a noun phrase.
	Description string
	Content     []byte
	// Missing is the reason why the part has no content. It is nil if the part has content.
	Missing error
}

// directory is the name of the directory that contains all files in the archive.
const directory = "zrlmpid-bundle"

// Write writes the parts that have content as a gzip-compressed tar archive. now is the modification time of all files.
func Write(w io.Writer, parts []Part, now time.Time) error {
	zip := gzip.NewWriter(w)
	archive := tar.NewWriter(zip)
	for _, part := range parts {
		if part.Missing != nil {
			continue
		}
		header := tar.Header{Name: path.Join(directory, part.Name), Mode: 0o600, Size: int64(len(part.Content)), ModTime: now,
			Format: tar.FormatPAX}
		if err := archive.WriteHeader(&header); err != nil {
			return fmt.Errorf("%s: %w", part.Name, err)
		}
		if _, err := archive.Write(part.Content); err != nil {
			return fmt.Errorf("%s: %w", part.Name, err)
		}
	}
	return errors.Join(archive.Close(), zip.Close())
}

// withoutArguments replaces the arguments of a kernel's program, because they may contain passwords.
const withoutArguments = "(arguments removed)"

// Configuration returns a configuration as YAML with all defaults, without comments, and without the arguments of
// kernels. Keys, certificates and passwords are in other files; the configuration contains only their names.
func Configuration(cfg *config.Config) ([]byte, error) {
	public := *cfg
	public.Ranks = make([]config.Rank, len(cfg.Ranks))
	for i, r := range cfg.Ranks {
		if len(r.Kernel.Command) > 1 {
			r.Kernel.Command = []string{r.Kernel.Command[0], withoutArguments}
		}
		public.Ranks[i] = r
	}
	return public.YAML()
}
