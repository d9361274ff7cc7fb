package standin_test

import (
	"io"
	"os"
	"strconv"

	"github.com/zrlmpi/zrlmpid/daemon/standin/cosim"
)

// simulator is a simulator without a role. The test determines its transfers.
type simulator struct {
	conn      *os.File
	withCycle cosim.Boundary
	cycle     uint64
	got       []cosim.Record // records from the engine
	// tcpLines is the number of lines of chunks that the engine can accept in the current step.
	tcpLines uint32
}

// newSimulator sends a Hello with the given version.
func newSimulator(version uint32) *simulator {
	return hello(cosim.Hello{Version: version, FIFO: 4096})
}

func hello(h cosim.Hello) *simulator {
	fd, err := strconv.Atoi(os.Getenv("ZRLMPI_COSIM_FD"))
	if err != nil {
		os.Exit(10)
	}
	s := &simulator{conn: os.NewFile(uintptr(fd), "zrlmpid"), withCycle: h.Boundary}
	s.conn.Write(cosim.AppendHello(nil, h))
	if _, body := s.read(); len(body) == 0 {
		os.Exit(11)
	}
	return s
}

func (s *simulator) read() (cosim.Type, []byte) {
	head := make([]byte, cosim.HeadLen)
	if _, err := io.ReadFull(s.conn, head); err != nil {
		os.Exit(0)
	}
	t, n, err := cosim.ParseHead(head)
	if err != nil {
		os.Exit(12)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(s.conn, body); err != nil {
		os.Exit(13)
	}
	return t, body
}

// step answers a step in which the role accepts everything and the given records are transferred.
func (s *simulator) step(records ...cosim.Record) {
	s.begin()
	s.answer(cosim.StreamState{StalledSince: never}, records...)
}

var never = [4]uint64{cosim.Never, cosim.Never, cosim.Never, cosim.Never}

// begin reads a Step.
func (s *simulator) begin() {
	var step cosim.Step
	if _, body := s.read(); cosim.ParseStep(body, s.withCycle, &step) != nil {
		os.Exit(14)
	}
	s.got, s.tcpLines = append(s.got, step.Records...), step.TCPLines
}

// answer answers a Step. tcp describes the chunks that the role has not accepted.
func (s *simulator) answer(tcp cosim.StreamState, records ...cosim.Record) {
	s.cycle += 10
	answer := cosim.Result{Cycle: s.cycle, StreamState: cosim.StreamState{StalledSince: never}, TCP: tcp, Records: records}
	s.conn.Write(cosim.AppendResult(nil, s.withCycle, &answer))
}

// holds returns the state of streams if the role has not accepted the chunks in s.got.
func (s *simulator) holds() cosim.StreamState {
	tcp := cosim.StreamState{StalledSince: never}
	for _, r := range s.got {
		switch r.Kind {
		case cosim.KindTCP + cosim.KindInData:
			tcp.Lines++
		case cosim.KindTCP + cosim.KindInMeta:
			tcp.Feedbacks++
		}
	}
	return tcp
}

// feedback waits for the end of a call. It returns the lines received before it.
func (s *simulator) feedback() (lines []cosim.Record, feedback byte) {
	for {
		for i, r := range s.got {
			if r.Kind == cosim.KindFeedback {
				lines, s.got = s.got[:i], s.got[i+1:]
				return lines, byte(r.Data)
			}
		}
		s.step()
	}
}

func recvCall(words, rank uint64) cosim.Record {
	return cosim.Record{Kind: cosim.KindCall, Keep: recvInt, Data: words | rank<<32}
}

// init adds the programs for the rtl kernels.
func init() {
	for name, f := range map[string]func(args []string) int{
		// sim-echo echoes two messages from rank 0, and exits between two calls.
		"sim-echo": func([]string) int {
			s := newSimulator(cosim.Version)
			for range 2 {
				s.step(recvCall(8, 0))
				lines, _ := s.feedback()
				words := uint64(2 * len(lines))
				if lines[len(lines)-1].Keep == 0x0f {
					words--
				}
				s.step(cosim.Record{Kind: cosim.KindCall, Keep: sendInt, Data: words})
				for again := true; again; {
					for _, l := range lines {
						l.Kind, l.Keep = cosim.KindOut, 0xff
						s.step(l)
					}
					_, feedback := s.feedback()
					again = feedback != 1
				}
			}
			s.step()
			return 0
		},
		"sim-version":  func([]string) int { newSimulator(7); return 0 },
		"sim-silent":   func([]string) int { select {} },
		"sim-no-hello": func([]string) int { return 4 },
		"sim-hangs": func([]string) int {
			s := newSimulator(cosim.Version)
			s.step(recvCall(8, 0))
			s.read()
			select {}
		},
		"sim-ends": func([]string) int {
			s := newSimulator(cosim.Version)
			s.step(recvCall(8, 0))
			s.step()
			return 3
		},
		"sim-stops": func([]string) int { // in the middle of a call, as by $finish
			s := newSimulator(cosim.Version)
			s.step(recvCall(8, 0))
			s.step()
			return 0
		},
		"sim-writes": func(args []string) int { // not a result
			s := newSimulator(cosim.Version)
			s.read()
			s.conn.Write([]byte(args[0]))
			io.Copy(io.Discard, s.conn)
			return 0
		},
		"sim-lies": func([]string) int { // it was given no lines
			s := newSimulator(cosim.Version)
			s.read()
			s.conn.Write(cosim.AppendResult(nil, s.withCycle,
				&cosim.Result{Cycle: 5, StreamState: cosim.StreamState{Lines: 1, StalledSince: [4]uint64{cosim.Never, 5, 5, 5}}}))
			io.Copy(io.Discard, s.conn)
			return 0
		},
		// sim-faulty makes a call with a rank that the cluster does not have.
		"sim-faulty": func([]string) int {
			s := newSimulator(cosim.Version)
			s.step(recvCall(8, 9))
			for {
				s.step()
			}
		},
	} {
		programs[name] = f
	}
}
