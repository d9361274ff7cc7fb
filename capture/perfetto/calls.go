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

// endedCall is a call and its outcome.
type endedCall struct {
	pcapng.Call
	outcome string
}

// posted returns the time at which the call was posted.
func (c *endedCall) posted() time.Time { return c.Time.Add(-c.Took) }

// add records the state of a call. If the call ended, add returns it and true.
func (o openCalls) add(c *pcapng.Call) (endedCall, bool) {
	key := callKey{c.Rank, c.ID}
	if c.State != pcapng.Posted {
		delete(o, key)
		return endedCall{*c, string(c.State)}, true
	}
	if len(o) < maxOpenCalls {
		o[key] = *c
	}
	return endedCall{}, false
}

// rest returns the calls pending at the end of the recording, in the order in which they were posted.
func (o openCalls) rest(end time.Time) []endedCall {
	var list []endedCall
	for _, c := range o {
		if end.After(c.Time) {
			c.Time, c.Took = end, c.Took+end.Sub(c.Time)
		}
		list = append(list, endedCall{c, string(capture.StillOpen)})
	}
	slices.SortFunc(list, byPosting)
	return list
}

func byPosting(a, b endedCall) int {
	return cmp.Or(a.posted().Compare(b.posted()), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.ID, b.ID))
}

// allCalls returns the calls of a report, in the order in which they were posted.
func (t *trace) allCalls(r *capture.Report) []endedCall {
	list := make([]endedCall, 0, len(r.Calls))
	for i := range r.Calls {
		if c, ok := t.calls.add(&r.Calls[i]); ok {
			list = append(list, c)
		}
	}
	list = append(list, t.calls.rest(r.Start.Add(time.Duration(nanoseconds(r.Summary.Seconds))))...)
	slices.SortStableFunc(list, byPosting)
	return list
}

// call adds the slice of a call. Times are relative to since.
func (t *trace) call(c *endedCall, since time.Time) {
	to := int64(c.Time.Sub(since))
	from := to - c.Took.Nanoseconds()
	notes := []annotation{
		{name: "bytes", number: c.Bytes}, {name: "tag", number: int64(c.Tag)},
		{name: "communicator", number: int64(c.Comm)}, {name: "outcome", text: c.outcome},
	}
	if c.Name != pcapng.SendCall && c.Name != pcapng.ReceiveCall {
		notes[1].name = "call"
	}
	t.slice(t.lane(side{rank: c.Rank, peer: callsPeer}, from, to), span{c.String(), from, to}, 0, notes, nil)
}
