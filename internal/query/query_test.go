package query

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestGet(t *testing.T) {
	failed := errors.New("failed")
	for name, tt := range map[string]struct {
		resp Response
		want int
		err  string
	}{
		"a document":      {Response{Document: 7}, 7, ""},
		"JSON":            {Response{Document: json.RawMessage("7")}, 7, ""},
		"an error":        {Response{Document: 7, Err: failed}, 0, "failed"},
		"another type":    {Response{Document: "7"}, 0, `the answer to "status" is string, and no int`},
		"no document":     {Response{}, 0, "and no int"},
		"other JSON":      {Response{Document: json.RawMessage("[]")}, 0, "cannot unmarshal"},
		"an unknown kind": {Unknown(Request{Kind: "x"}), 0, `no such request: "x"`},
	} {
		h := func(_ context.Context, r Request) Response {
			if r.Version != Version {
				t.Errorf("%s: version %d", name, r.Version)
			}
			return tt.resp
		}
		got, err := Get[int](t.Context(), h, Request{Kind: Status})
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
	h := func(_ context.Context, r Request) Response { return Response{Err: failed} }
	if err := Do(t.Context(), h, Request{}); !errors.Is(err, failed) {
		t.Error(err)
	}
}
