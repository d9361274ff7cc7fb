package pmi

import (
	"errors"
	"fmt"
	"strconv"
)

// Server implements the launcher's side of a job: it answers the lines that the processes send. It starts no
// goroutines, opens no connections, and is used by one goroutine at a time.
type Server struct {
	name    string
	mapping string
	keys    map[string]string
	states  []State
	waiting int
}

// State is the state of a process.
type State int

// States of a process.
const (
	// Started means that the process runs but has not contacted the launcher. It may never do so, because it need not
	// use MPI.
	Started State = iota
	// Connected: it has joined the job.
	Connected
	// Waiting: it is in a barrier.
	Waiting
	// Finalized: it no longer needs the launcher.
	Finalized
)

// Reply is a line that the launcher must send to a process.
type Reply struct {
	Rank int
	Line string
}

// AbortError is returned when a process has asked the launcher to end the job.
type AbortError struct{ Code int }

// Error includes the code.
func (e *AbortError) Error() string { return fmt.Sprintf("the job is aborted with code %d", e.Code) }

// maxKeys limits the number of keys in the key-value space, divided by the number of processes.
const maxKeys = 256

// NewServer returns the server of a job of size processes, which all run on one host. name is the name of the key-value
// space.
func NewServer(size int, name string) *Server {
	return &Server{
		name: name, keys: map[string]string{}, states: make([]State, size),
		mapping: fmt.Sprintf("(vector,(0,1,%d))", size),
	}
}

// mappingKey is the key by which launchers publish the placement of processes on hosts.
const mappingKey = "PMI_process_mapping"

// State returns the state of a process.
func (s *Server) State(rank int) State { return s.states[rank] }

// Handle handles a line of a process, without its end, and appends the replies. The error is an *AbortError, or reports
// a violation of the protocol.
func (s *Server) Handle(rank int, text string, replies []Reply) ([]Reply, error) {
	msg, err := parse(text)
	if err != nil {
		return replies, err
	}
	answer := func(command string, pairs ...string) []Reply {
		return append(replies, Reply{rank, formatLine(command, pairs...)})
	}
	state := &s.states[rank]
	switch msg.command {
	case "init":
		if v := msg.get("pmi_version"); v != "1" {
			return answer("response_to_init", "pmi_version", "1", "pmi_subversion", "1", "rc", "-1"), nil
		}
		if *state != Started {
			return replies, fmt.Errorf("%w: a second init", ErrMessage)
		}
		*state = Connected
		return answer("response_to_init", "pmi_version", "1", "pmi_subversion", "1", "rc", "0"), nil
	case "abort":
		code, err := msg.intValue("exitcode")
		return replies, errors.Join(err, &AbortError{code})
	}
	if *state != Connected {
		return replies, fmt.Errorf("%w: %s before init, in a barrier or after finalize", ErrMessage, msg.command)
	}
	switch msg.command {
	case "get_maxes":
		return answer("maxes", "kvsname_max", strconv.Itoa(maxName), "keylen_max", strconv.Itoa(maxKey), "vallen_max",
			strconv.Itoa(maxValue)), nil
	case "get_appnum":
		return answer("appnum", "appnum", "0"), nil
	case "get_my_kvsname":
		return answer("my_kvsname", "kvsname", s.name), nil
	case "get_universe_size":
		return answer("universe_size", "size", strconv.Itoa(len(s.states))), nil
	case "put":
		if why := s.put(&msg); why != "" {
			return answer("put_result", "rc", "-1", "msg", why), nil
		}
		return answer("put_result", "rc", "0", "msg", "success"), nil
	case "get":
		if value, found := s.get(msg.get("kvsname"), msg.get("key")); found {
			return answer("get_result", "rc", "0", "msg", "success", "value", value), nil
		}
		return answer("get_result", "rc", "-1", "msg", "key_not_found", "value", "unknown"), nil
	case "barrier_in":
		*state = Waiting
		s.waiting++
		return s.releaseBarrier(replies), nil
	case "finalize":
		*state = Finalized
		return answer("finalize_ack", "rc", "0"), nil
	}
	return answer(msg.command+"_result", "rc", "-1", "msg", "not_supported"), nil
}

// put stores a value in the key-value space and returns "". If it cannot store the value, it returns the reason.
func (s *Server) put(m *message) string {
	key, value := m.get("key"), m.get("value")
	switch _, again := s.keys[key]; {
	case m.get("kvsname") != s.name:
		return "no_such_kvsname"
	case !isPlain(key, maxKey) || !isPlain(value, maxValue):
		return "key_or_value_too_long"
	case again || key == mappingKey:
		return "duplicate_key"
	case len(s.keys) >= maxKeys*len(s.states):
		return "too_many_keys"
	}
	s.keys[key] = value
	return ""
}

// get returns the value of a key in the job's key-value space. The server itself provides the value of mappingKey.
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

// releaseBarrier ends a barrier that all processes have entered.
func (s *Server) releaseBarrier(replies []Reply) []Reply {
	if s.waiting < len(s.states) {
		return replies
	}
	s.waiting = 0
	for rank := range s.states {
		s.states[rank] = Connected
		replies = append(replies, Reply{rank, formatLine("barrier_out", "rc", "0")})
	}
	return replies
}
