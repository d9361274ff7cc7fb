package control

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// MessageHeader is the header, in an answer to recv, that contains the Message as JSON.
const MessageHeader = "Zrlmpid-Message"

// DefaultWords is the default length of recv's buffer in words (16 MiB), the same as in the kernels of stand-ins.
const DefaultWords = 1 << 22

// send sends the body of the request as a message.
func (s *Server) send(w http.ResponseWriter, r *http.Request) error {
	q := parseParameters(r)
	from, to := q.rank("from"), q.rank("to")
	// Without Sync, a short message to a peer with the extended profile would count as sent as soon as it has been
	// copied.
	opts := mpe.Options{Datatype: q.datatype(), Tag: q.number("tag", 0), Sync: true}
	timeout := q.timeout()
	port, err := s.portFor(q, from, to)
	if err != nil {
		return err
	}
	message, data, err := s.readMessage(w, r, port.MaxWords())
	if message != nil {
		defer message.free()
	}
	if err != nil {
		return err
	}
	caller, end := callerContext(r)
	defer end()
	ctx, stop := withTimeout(caller, timeout)
	defer stop()
	st, err := port.Send(ctx, to, data, opts)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, describeMessage(port.Rank(), st))
	return nil
}

// recv receives a message and answers the request with it.
func (s *Server) recv(w http.ResponseWriter, r *http.Request) error {
	q := parseParameters(r)
	from, to := q.rank("from"), q.rank("to")
	words := q.number("words", DefaultWords)
	opts := mpe.Options{AnyTag: true, AnyDatatype: q.values.Get("datatype") == anyDatatype}
	if !opts.AnyDatatype {
		opts.Datatype = q.datatype()
	}
	timeout := q.timeout()
	port, err := s.portFor(q, to, from)
	if err == nil && !q.values.Has("words") {
		words = min(words, port.MaxWords())
	}
	if err == nil {
		err = checkWords(port, words)
	}
	if err != nil {
		return err
	}
	message, err := s.newMessage(words * protocol.WordLen)
	if err != nil {
		return err
	}
	defer message.free()
	if err := message.charge(len(message.buf)); err != nil {
		return err
	}
	caller, end := callerContext(r)
	defer end()
	ctx, stop := withTimeout(caller, timeout)
	defer stop()
	buf := message.buf
	st, err := port.Recv(ctx, from, buf, opts)
	msg := describeMessage(port.Rank(), st)
	if errors.Is(err, handshake.ErrTruncated) {
		// The sender has already received an ACK for the message, so the daemon must not discard the received part.
		msg.Truncated = err.Error()
	} else if err != nil {
		return err
	}
	head, err := json.Marshal(msg)
	if err != nil {
		return err
	}
	data := buf[:min(len(buf), int(st.Words)*protocol.WordLen)]
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.Header().Set(MessageHeader, string(head))
	_, _ = w.Write(data)
	return nil
}

// portFor returns the port of the local rank named in a request, or the first error in the request's parameters.
func (s *Server) portFor(q *parameters, local, peer int) (Port, error) {
	if q.err != nil {
		return nil, q.err
	}
	port, err := s.backend.Host(local)
	if err != nil {
		return nil, err
	}
	return port, checkPeer(port, peer)
}

// anyDatatype, used as the datatype of a receive, matches messages of both datatypes.
const anyDatatype = "any"

// parameters parses the parameters of a request and keeps the first error that occurs.
type parameters struct {
	values url.Values
	err    error
}

func parseParameters(r *http.Request) *parameters { return &parameters{values: r.URL.Query()} }

func (q *parameters) setError(err error) {
	if q.err == nil {
		q.err = err
	}
}

// number returns an integer parameter, or missing if the request does not contain it. It does not check the range.
func (q *parameters) number(name string, missing int) int {
	text := q.values.Get(name)
	if text == "" {
		return missing
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		q.setError(Errorf(Usage, "%s %q: not a number: give a whole number", name, text))
	}
	return n
}

func (q *parameters) rank(name string) int { return q.number(name, AnyRank) }

func (q *parameters) datatype() protocol.Datatype {
	text := q.values.Get("datatype")
	if text == "" {
		return protocol.Int
	}
	d, err := protocol.ParseDatatype(text)
	if err != nil {
		q.setError(Errorf(Usage, "datatype: %v", err))
	}
	return d
}

// timeout returns the timeout of the request: 10 s by default, and 0 if the request waits forever.
func (q *parameters) timeout() time.Duration {
	text := q.values.Get("timeout")
	if text == "" {
		return 10 * time.Second
	}
	d, err := parseTimeout(text)
	if err != nil {
		q.setError(err)
	}
	return d
}
