package recorder

import (
	"io"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// fileSnapLength is SnapLength plus the longest headers that a packet gets in a file, IPv6 and TCP.
const fileSnapLength = SnapLength + 40 + 20

// File returns the options of a file with a recorder's contents, including the maximum length kept of each packet.
func File(comment string) pcapng.WriterOptions {
	return pcapng.WriterOptions{Comment: comment, SnapLength: fileSnapLength}
}

// Write writes a recording to w as a file with a comment. end is the time at which it ended.
func Write(w io.Writer, r Recorded, end time.Time, comment string) error {
	out := pcapng.NewWriter(w, File(comment))
	if err := r.write(out); err != nil {
		return err
	}
	out.End(&pcapng.Ending{Time: end})
	return out.Flush()
}

// write writes the packets, followed by the calls.
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
