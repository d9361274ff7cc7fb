package perfetto

import (
	"cmp"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// maxOpenCalls is the maximum number of pending calls remembered, whatever a file claims. Any further call is written
// only when it ends.
const maxOpenCalls = 1 << 16

// callKey identifies a pending call.
type callKey struct {
	rank int
	id   int64
}

// openCalls maps the key of each pending call to the call.
type openCalls map[callKey]pcapng.Call

// tracedCall is a call and its outcome.
type tracedCall struct {
	pcapng.Call
	outcome string
}

// postTime returns the time at which the call was posted.
func (c *tracedCall) postTime() time.Time { return c.Time.Add(-c.Duration) }

// addCall records the state of a call. If the call ended, add returns it and true.
func (o openCalls) addCall(c *pcapng.Call) (tracedCall, bool) {
	key := callKey{c.Rank, c.ID}
	if c.State != pcapng.CallPosted {
		delete(o, key)
		return tracedCall{*c, string(c.State)}, true
	}
	if len(o) < maxOpenCalls {
		o[key] = *c
	}
	return tracedCall{}, false
}

// pendingCalls returns the calls pending at the end of the recording, in the order in which they were posted.
func (o openCalls) pendingCalls(end time.Time) []tracedCall {
	var list []tracedCall
	for _, c := range o {
		if end.After(c.Time) {
			c.Time, c.Duration = end, c.Duration+end.Sub(c.Time)
		}
		list = append(list, tracedCall{c, string(capture.MessageOpen)})
	}
	slices.SortFunc(list, comparePostTime)
	return list
}

func comparePostTime(a, b tracedCall) int {
	return cmp.Or(a.postTime().Compare(b.postTime()), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.ID, b.ID))
}

// allCalls returns the calls of a report, in the order in which they were posted.
func (t *trace) allCalls(r *capture.Report) []tracedCall {
	list := make([]tracedCall, 0, len(r.Calls))
	for i := range r.Calls {
		if c, ok := t.calls.addCall(&r.Calls[i]); ok {
			list = append(list, c)
		}
	}
	list = append(list, t.calls.pendingCalls(r.Start.Add(time.Duration(nanoseconds(r.Summary.Seconds))))...)
	slices.SortStableFunc(list, comparePostTime)
	return list
}

// addCall adds the slice of a call. Times are relative to since.
func (t *trace) addCall(c *tracedCall, since time.Time) {
	to := int64(c.Time.Sub(since))
	from := to - c.Duration.Nanoseconds()
	notes := []annotation{
		{name: "bytes", number: c.Bytes}, {name: "tag", number: int64(c.Tag)},
		{name: "communicator", number: int64(c.Comm)}, {name: "outcome", text: c.outcome},
	}
	if c.Name != pcapng.SendCall && c.Name != pcapng.ReceiveCall {
		notes[1].name = "call"
	}
	t.addSlice(t.freeLane(side{rank: c.Rank, peer: callsPeer}, from, to), span{c.String(), from, to}, 0, notes, nil)
}
