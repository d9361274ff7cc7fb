package control

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/node"
)

// TestDecodeAnswer checks that control characters are removed from texts, no matter how they are spelled, and
// that everything else is kept.
func TestDecodeAnswer(t *testing.T) {
	for text, want := range map[string]string{
		`"plain é ☃ \u00e9 \u2603 \\ \" \/"`: "plain é ☃ é ☃ \\ \" /",
		`"a\u001b[2Jb"`:                      "a      [2Jb",
		`"a\nb\tc\rd\be\ff"`:                 "a  b  c  d  e  f",
		`"\\u001b \\\u001b"`:                 "\\u001b \\      ",
		`"\\n"`:                              "\\n",
		"\"a\u007f\u0085\u202eb\"":           "a   b",
		`"\u009b\u202E"`:                     "            ",
	} {
		var got string
		if err := decodeAnswer([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}

// TestPlausible checks that an answer from a rank is decoded no matter how many peers the rank has, and that an
// answer is not decoded if it would take far more memory than its text.
func TestPlausible(t *testing.T) {
	for _, peers := range []int{0, 1, 4095} {
		r := node.Report{Cluster: make([]state.Member, peers), Peers: make([]state.PeerCounters, peers)}
		r.Engine.Peers = make([]state.Peer, peers)
		text, err := json.Marshal(&r)
		if err != nil {
			t.Fatal(err)
		}
		if err := decodeAnswer(text, new(node.Report)); err != nil {
			t.Errorf("%d peers, %d bytes: %v", peers, len(text), err)
		}
	}
	for name, text := range map[string]string{
		"objects": `{"peer_counters": [` + strings.Repeat("{},", 1<<20) + `{}]}`,
		"arrays":  strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20),
	} {
		if err := decodeAnswer([]byte(text), new(node.Report)); !errors.Is(err, errImplausible) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWarnings checks that a status counts as doubtful if ranks do not answer or belong to another user.
func TestWarnings(t *testing.T) {
	for want, s := range map[string]state.Status{
		"": {Job: "x"},
		"job x@7 belongs to user 7, whose processes are not trusted": {Job: "x@7", ForeignUser: new(7)},
		"do not answer: 1 2": {Job: "x", Silent: []int{1, 2}},
		"were not read":      {Job: "x", UnreadRanks: []int{1}},
		"30 31 and 968 more": {Job: "x", UnreadRanks: func() (list []int) {
			for i := range 1000 {
				list = append(list, i)
			}
			return list
		}()},
	} {
		if got := strings.Join(s.Warnings(), "\n"); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%q: %q", want, got)
		}
	}
}
