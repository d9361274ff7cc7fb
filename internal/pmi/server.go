package pmi

import (
	"errors"
	"fmt"
	"strconv"
)

// Server is the launcher's side of a job: what it answers to the lines of each process. It has
// neither goroutine nor connection, and is used by one goroutine at a time.
type Server struct {
	name    string
	mapping string
	keys    map[string]string
	procs   []process
	waiting int
}

// State is how far a process is.
type State int

// The states of a process.
const (
	// Started: it has not said anything, and may be no program that uses MPI.
	Started State = iota
	// Connected: it has asked for its place in the job.
	Connected
	// Waiting: it is in a barrier.
	Waiting
	// Finalized: it needs the launcher no longer.
	Finalized
)

type process struct {
	state    State
	barriers int
}

// Reply is a line for a process.
type Reply struct {
	Rank int
	Line string
}

// AbortError is the request of a process to end the job.
type AbortError struct{ Rank, Code int }

// Error says which process has asked for it.
func (e *AbortError) Error() string {
	return fmt.Sprintf("rank %d has aborted the job with code %d", e.Rank, e.Code)
}

// maxKeys is how many keys a process may put, on average.
const maxKeys = 256

// NewServer is the server of a job of so many processes, all on one host. Name is that of the
// space of keys.
func NewServer(size int, name string) *Server {
	return &Server{
		name: name, keys: map[string]string{}, procs: make([]process, size),
		mapping: fmt.Sprintf("(vector,(0,1,%d))", size),
	}
}

// mappingKey is a key that launchers give a value: which process is on which host.
const mappingKey = "PMI_process_mapping"

// State returns how far a process is, and how many barriers it has passed or is in.
func (s *Server) State(rank int) (State, int) { return s.procs[rank].state, s.procs[rank].barriers }

// Handle takes a line of a process, without its end, and adds what is to be sent. The error
// is an AbortError, or that of a process that does not keep to the protocol.
func (s *Server) Handle(rank int, text string, replies []Reply) ([]Reply, error) {
	m, err := parse(text)
	if err != nil {
		return replies, fmt.Errorf("rank %d: %w", rank, err)
	}
	answer := func(command string, pairs ...string) []Reply {
		return append(replies, Reply{rank, line(command, pairs...)})
	}
	p := &s.procs[rank]
	switch m.command {
	case "init":
		if v := m.get("pmi_version"); v != "1" {
			return answer("response_to_init", "pmi_version", "1", "pmi_subversion", "1", "rc", "-1"), nil
		}
		if p.state != Started {
			return replies, fmt.Errorf("rank %d: %w: a second init", rank, ErrMessage)
		}
		p.state = Connected
		return answer("response_to_init", "pmi_version", "1", "pmi_subversion", "1", "rc", "0"), nil
	case "abort":
		code, err := m.number("exitcode")
		return replies, errors.Join(err, &AbortError{rank, code})
	}
	if p.state != Connected {
		return replies, fmt.Errorf("rank %d: %w: %s before init, in a barrier or after finalize", rank, ErrMessage, m.command)
	}
	switch m.command {
	case "get_maxes":
		return answer("maxes", "kvsname_max", strconv.Itoa(maxName), "keylen_max", strconv.Itoa(maxKey), "vallen_max", strconv.Itoa(maxValue)), nil
	case "get_appnum":
		return answer("appnum", "appnum", "0"), nil
	case "get_my_kvsname":
		return answer("my_kvsname", "kvsname", s.name), nil
	case "get_universe_size":
		return answer("universe_size", "size", strconv.Itoa(len(s.procs))), nil
	case "put":
		if why := s.put(&m); why != "" {
			return answer("put_result", "rc", "-1", "msg", why), nil
		}
		return answer("put_result", "rc", "0", "msg", "success"), nil
	case "get":
		if value, found := s.get(m.get("kvsname"), m.get("key")); found {
			return answer("get_result", "rc", "0", "msg", "success", "value", value), nil
		}
		return answer("get_result", "rc", "-1", "msg", "key_not_found", "value", "unknown"), nil
	case "barrier_in":
		p.state = Waiting
		p.barriers++
		s.waiting++
		return s.release(replies), nil
	case "finalize":
		p.state = Finalized
		return answer("finalize_ack", "rc", "0"), nil
	}
	return answer(m.command+"_result", "rc", "-1", "msg", "not_supported"), nil
}

// put returns why it cannot be done, or "".
func (s *Server) put(m *message) string {
	key, value := m.get("key"), m.get("value")
	switch _, again := s.keys[key]; {
	case m.get("kvsname") != s.name:
		return "no_such_kvsname"
	case !plain(key, maxKey) || !plain(value, maxValue):
		return "key_or_value_too_long"
	case again || key == mappingKey:
		return "duplicate_key"
	case len(s.keys) >= maxKeys*len(s.procs):
		return "too_many_keys"
	}
	s.keys[key] = value
	return ""
}

func (s *Server) get(name, key string) (string, bool) {
	if name != s.name {
		return "", false
	}
	if key == mappingKey {
		return s.mapping, true
	}
	value, found := s.keys[key]
	return value, found
}

// release ends a barrier that all processes are in.
func (s *Server) release(replies []Reply) []Reply {
	if s.waiting < len(s.procs) {
		return replies
	}
	s.waiting = 0
	for rank := range s.procs {
		s.procs[rank].state = Connected
		replies = append(replies, Reply{rank, line("barrier_out", "rc", "0")})
	}
	return replies
}
