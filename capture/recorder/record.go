package recorder

import (
	"io"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// fileSnapLength is SnapLength with the longest headers that a packet gets in a file: IPv6 and TCP.
const fileSnapLength = SnapLength + 40 + 20

// File returns the options of a file of what a recorder has: it says how much of each packet it has at most.
func File(comment string) capture.WriterOptions {
	return capture.WriterOptions{Comment: comment, SnapLength: fileSnapLength}
}

// Write writes units as a file, with a comment on each packet that a finding names. The recording ended at end.
func Write(w io.Writer, units []capture.Unit, end time.Time, profile protocol.Profile, comment string) error {
	for i := range units {
		units[i].Packet = int64(i + 1)
	}
	capture.Annotate(units, end, profile)
	out := capture.NewWriter(w, File(comment))
	for i := range units {
		if err := out.Unit(&units[i]); err != nil {
			return err
		}
	}
	out.End(&capture.Ending{Time: end})
	return out.Flush()
}
