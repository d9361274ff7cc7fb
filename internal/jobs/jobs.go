package jobs

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Socket is that of a rank.
type Socket struct {
	UID  int
	Job  string
	Rank int
}

// ErrForeign: the socket belongs to another user than its name says.
var ErrForeign = errors.New("the socket belongs to another user than its name says")

const (
	prefix = "@zrlmpi/"
	// asking begins the name of the socket of a tool that wants to know what other ranks answer. It is no rank's socket.
	asking = "@zrlmpi-asking/"
	// packetsSuffix ends the name of the socket that has the packets of a rank. No name of a rank's own socket has it.
	packetsSuffix = "/packets"
	// maxJob is the most bytes of the name of a job: a socket's name has at most 107.
	maxJob = 64
	// maxDocument is the most bytes that are read of an answer.
	maxDocument = 256 << 20
)

func (s Socket) String() string {
	return fmt.Sprintf("%s%d/%s/%d", prefix, s.UID, s.Job, s.Rank)
}

// Name returns the name of a job as sockets have it: that of its launcher, in characters that all tools take.
func Name(launcher string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_' {
			return r
		}
		return '_'
	}, launcher)
	return cmp.Or(name[:min(len(name), maxJob)], "_")
}

// parse reads the name of a socket.
func parse(name string) (s Socket, ok bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	fields := strings.Split(rest, "/")
	if !ok || len(fields) != 3 || fields[1] == "" || fields[1] != Name(fields[1]) {
		return s, false
	}
	uid, err1 := strconv.ParseUint(fields[0], 10, 32)
	rank, err2 := strconv.ParseUint(fields[2], 10, 31)
	return Socket{int(uid), fields[1], int(rank)}, err1 == nil && err2 == nil
}

// list returns the sockets that listen, by the content of /proc/net/unix.
func list(table io.Reader) ([]Socket, error) {
	const listens = "00010000"
	text, err := io.ReadAll(table)
	if err != nil {
		return nil, err
	}
	var found []Socket
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 8 || fields[3] != listens {
			continue
		}
		if s, ok := parse(fields[7]); ok {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b Socket) int {
		return cmp.Or(cmp.Compare(a.UID, b.UID), cmp.Compare(a.Job, b.Job), cmp.Compare(a.Rank, b.Rank))
	})
	return slices.Compact(found), nil
}
