package wire

import (
	"encoding/json"
	"errors"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// details are the structured errors in an error, as JSON. Errors are rare, so
// this may be slow.
type details struct {
	Wait           *waitDetails              `json:"wait,omitempty"`
	Truncated      *mpe.TruncatedError       `json:"truncated,omitempty"`
	Lost           *mpe.PeerLostError        `json:"lost,omitempty"`
	TruncatedWords *handshake.TruncatedError `json:"truncated_words,omitempty"`
	Timeout        *handshake.TimeoutError   `json:"timeout,omitempty"`
	Partial        *handshake.PartialError   `json:"partial,omitempty"`
	Remote         *handshake.RemoteError    `json:"remote,omitempty"`
	Restart        *handshake.RestartError   `json:"restart,omitempty"`
	DeadEnd        *deadEndDetails           `json:"dead_end,omitempty"`
	Call           *coll.CallError           `json:"call,omitempty"`
	// Step is that of a collective call which has failed because of the others.
	Step *stepDetails `json:"step,omitempty"`
	// Failed is a collective call that has failed on another rank.
	Failed *collective.CallFailedError `json:"failed,omitempty"`
}

// stepDetails is collective.StepError, whose cause travels as its text and the set of what it is.
type stepDetails struct {
	Collective  coll.Collective
	Algorithm   string
	Number      int
	Kind        coll.Kind
	Peer, Bytes int
	Others      []int `json:",omitempty"`
	Cause       string
	Set         uint64 `json:",omitempty"`
}

// deadEndDetails is handshake.DeadEndError, whose cause travels as its text and the set of what it is.
type deadEndDetails struct {
	Local, Remote uint32
	Cause         string
	Set           uint64 `json:",omitempty"`
}

// maxOthers is how many ranks stepDetails lists at most.
const maxOthers = 1000

// waitDetails is mpe.WaitError, whose network error travels as a text.
type waitDetails struct {
	handshake.Wait
	Queued     int
	InTransfer bool
	Network    string `json:",omitempty"`
}

// maxDetails is the longest details, in bytes. Longer ones are left out.
const maxDetails = 32 << 10

func detailsOf(err error) (d details) {
	if e, ok := errors.AsType[*mpe.WaitError](err); ok {
		d.Wait = &waitDetails{Wait: e.Wait, Queued: e.Queued, InTransfer: e.InTransfer}
		if e.Network != nil {
			d.Wait.Network = Clip(e.Network.Error())
		}
	}
	d.Timeout, _ = errors.AsType[*handshake.TimeoutError](err)
	d.Partial, _ = errors.AsType[*handshake.PartialError](err)
	d.Truncated, _ = errors.AsType[*mpe.TruncatedError](err)
	d.Lost, _ = errors.AsType[*mpe.PeerLostError](err)
	d.TruncatedWords, _ = errors.AsType[*handshake.TruncatedError](err)
	d.Remote, _ = errors.AsType[*handshake.RemoteError](err)
	d.Restart, _ = errors.AsType[*handshake.RestartError](err)
	if e, ok := errors.AsType[*handshake.DeadEndError](err); ok && e.Cause != nil {
		d.DeadEnd = &deadEndDetails{Local: e.Local, Remote: e.Remote, Cause: Clip(e.Cause.Error()),
			Set: sentinelSet(e.Cause)}
	}
	d.Call, _ = errors.AsType[*coll.CallError](err)
	d.Failed, _ = errors.AsType[*collective.CallFailedError](err)
	if e, ok := errors.AsType[*collective.StepError](err); ok && e.Err != nil {
		d.Step = &stepDetails{
			Collective: e.Collective, Algorithm: e.Algorithm, Number: e.Number, Kind: e.Kind, Peer: e.Peer, Bytes: e.Bytes,
			Others: e.Others[:min(len(e.Others), maxOthers)], Cause: Clip(e.Err.Error()), Set: sentinelSet(e.Err),
		}
	}
	return d
}

// errors returns what errors.As is to find.
func (d *details) errors() (list []error) {
	if w := d.Wait; w != nil {
		e := &mpe.WaitError{Wait: w.Wait, Queued: w.Queued, InTransfer: w.InTransfer}
		if w.Network != "" {
			e.Network = errors.New(w.Network)
		}
		list = append(list, e)
	}
	add := func(is bool, err error) {
		if is {
			list = append(list, err)
		}
	}
	add(d.Timeout != nil, d.Timeout)
	add(d.Partial != nil, d.Partial)
	add(d.Truncated != nil, d.Truncated)
	add(d.Lost != nil, d.Lost)
	add(d.TruncatedWords != nil, d.TruncatedWords)
	add(d.Remote != nil, d.Remote)
	add(d.Restart != nil, d.Restart)
	if e := d.DeadEnd; e != nil {
		list = []error{&handshake.DeadEndError{
			Local: e.Local, Remote: e.Remote, Cause: &Error{Text: e.Cause, Set: e.Set, Parts: list},
		}}
	}
	add(d.Call != nil, d.Call)
	add(d.Failed != nil, d.Failed)
	if s := d.Step; s != nil {
		list = []error{&collective.StepError{
			Collective: s.Collective, Algorithm: s.Algorithm, Number: s.Number, Kind: s.Kind, Peer: s.Peer, Bytes: s.Bytes,
			Others: s.Others, Err: &Error{Text: s.Cause, Set: s.Set, Parts: list},
		}}
	}
	return list
}

// encodeError returns an error as DONE carries it.
func encodeError(err error) []byte {
	text := Clip(err.Error())
	b := Order.AppendUint64(nil, sentinelSet(err))
	b = Order.AppendUint32(b, uint32(len(text)))
	b = append(b, text...)
	if d := detailsOf(err); d != (details{}) {
		// All of it can be encoded: plain fields of plain types.
		if js, err := json.Marshal(d); err == nil && len(js) <= maxDetails {
			b = append(b, js...)
		}
	}
	return b
}

// parseError is the inverse of encodeError. The first error is what was sent, the
// second why it cannot be read.
func parseError(b []byte) (sent, err error) {
	if len(b) < 12 {
		return nil, Violationf("an error of %d bytes", len(b))
	}
	set, n := Order.Uint64(b), int(Order.Uint32(b[8:]))
	if b = b[12:]; n > len(b) {
		return nil, Violationf("an error's text of %d bytes in %d", n, len(b))
	}
	e := &Error{Text: string(b[:n]), Set: set}
	if b = b[n:]; len(b) > 0 {
		var d details
		if err := json.Unmarshal(b, &d); err != nil {
			return nil, Violationf("the details of an error: %v", err)
		}
		e.Parts = d.errors()
	}
	return e, nil
}
