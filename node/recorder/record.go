package recorder

import (
	"io"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// fileSnapLength is SnapLength plus the length of the longest headers added to a packet in a file, IPv6 and TCP.
const fileSnapLength = SnapLength + 40 + 20

// FileOptions returns the options for a file that holds a recorder's contents, including the maximum number of bytes
// kept of each packet.
func FileOptions(comment string) pcapng.WriterOptions {
	return pcapng.WriterOptions{Comment: comment, SnapLength: fileSnapLength}
}

// Write writes a recording to w as a file with a comment. end is the time at which the recording ended.
func Write(w io.Writer, r Recording, end time.Time, comment string) error {
	out := pcapng.NewWriter(w, FileOptions(comment))
	if err := r.writeTo(out); err != nil {
		return err
	}
	out.WriteEnd(&pcapng.EndRecord{Time: end})
	return out.Flush()
}

// writeTo writes the packets, followed by the calls.
func (r Recording) writeTo(out *pcapng.Writer) error {
	for i := range r.Units {
		if err := out.WriteUnit(&r.Units[i]); err != nil {
			return err
		}
	}
	for i := range r.Calls {
		out.AddNote(&r.Calls[i])
	}
	return nil
}
