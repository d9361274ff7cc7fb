package perfetto

import (
	"cmp"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// maxOpenCalls limits the pending calls that are remembered, whatever a file claims. A further call appears in the
// trace only if it ends in the recording.
const maxOpenCalls = 1 << 16

// callKey identifies a pending call.
type callKey struct {
	rank int
	id   int64
}

// openCalls holds the calls that have been posted and have not ended. It has at most maxOpenCalls entries.
type openCalls map[callKey]pcapng.Call

// tracedCall is a call and its outcome.
type tracedCall struct {
	pcapng.Call
	outcome string
}

// postTime returns the time at which the call was posted.
func (c *tracedCall) postTime() time.Time { return c.Time.Add(-c.Duration) }

// addCall records the state of a call. If the call ended, addCall returns the ended call and true.
func (o openCalls) addCall(call *pcapng.Call) (tracedCall, bool) {
	key := callKey{call.Rank, call.ID}
	if call.State != pcapng.CallPosted {
		delete(o, key)
		return tracedCall{*call, string(call.State)}, true
	}
	if len(o) < maxOpenCalls {
		o[key] = *call
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
func (t *trace) allCalls(report *capture.Report) []tracedCall {
	list := make([]tracedCall, 0, len(report.Calls))
	for i := range report.Calls {
		if c, ok := t.calls.addCall(&report.Calls[i]); ok {
			list = append(list, c)
		}
	}
	list = append(list, t.calls.pendingCalls(report.Start.Add(time.Duration(nanoseconds(report.Summary.Seconds))))...)
	slices.SortStableFunc(list, comparePostTime)
	return list
}

// addCall adds a call to the trace as a slice. Times are relative to the parameter since.
func (t *trace) addCall(call *tracedCall, since time.Time) {
	to := int64(call.Time.Sub(since))
	from := to - call.Duration.Nanoseconds()
	notes := []annotation{
		{name: "bytes", number: call.Bytes}, {name: "tag", number: int64(call.Tag)},
		{name: "communicator", number: int64(call.Comm)}, {name: "outcome", text: call.outcome},
	}
	if call.Name != pcapng.SendCall && call.Name != pcapng.ReceiveCall {
		notes[1].name = "call"
	}
	t.addSlice(t.freeLane(side{rank: call.Rank, peer: callsPeer}, from, to), span{call.String(), from, to}, 0, notes, nil)
}
