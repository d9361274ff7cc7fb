package recorder

import (
	"io"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// fileSnapLength is SnapLength with the longest headers that a packet gets in a file: IPv6 and TCP.
const fileSnapLength = SnapLength + 40 + 20

// File returns the options of a file of what a recorder has: it says how much of each packet it has at most.
func File(comment string) pcapng.WriterOptions {
	return pcapng.WriterOptions{Comment: comment, SnapLength: fileSnapLength}
}

// Write writes a recording that ended at a time as a file with a comment.
func Write(w io.Writer, r Recorded, end time.Time, comment string) error {
	out := pcapng.NewWriter(w, File(comment))
	if err := r.write(out); err != nil {
		return err
	}
	out.End(&pcapng.Ending{Time: end})
	return out.Flush()
}

// write writes the packets, and then the calls.
func (r Recorded) write(out *pcapng.Writer) error {
	for i := range r.Units {
		if err := out.Unit(&r.Units[i]); err != nil {
			return err
		}
	}
	for i := range r.Calls {
		out.Note(&r.Calls[i])
	}
	return nil
}
