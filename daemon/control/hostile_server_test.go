package control

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// TestAskHostileServer checks that an answer from any other kind of server is rejected, without taking much
// memory.
func TestAskHostileServer(t *testing.T) {
	endless := func(piece string) func(w io.Writer) {
		return func(w io.Writer) {
			for b := []byte(strings.Repeat(piece, 1<<14)); ; {
				if _, err := w.Write(b); err != nil {
					return
				}
			}
		}
	}
	for name, tt := range map[string]struct {
		answer func(w io.Writer)
		want   string
	}{
		"endless spaces":  {endless(" "), "longer than"},
		"endless objects": {func(w io.Writer) { fmt.Fprint(w, `{"ranks":[`); endless("{},")(w) }, "longer than"},
		"many objects": {func(w io.Writer) { fmt.Fprint(w, `{"ranks":[`+strings.Repeat("{},", maxObjects)+"{}]}") },
			"objects"},
		"many nulls": {func(w io.Writer) {
			fmt.Fprint(w, `{"ranks":[`+strings.Repeat("null,", maxObjects)+"null]}")
		}, "objects"},
		"no status": {func(w io.Writer) { fmt.Fprint(w, `{"version":"1"}`) }, "no version or no ranks"},
		"no JSON":   {func(w io.Writer) { fmt.Fprint(w, `<html>`) }, "invalid character"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { tt.answer(w) }))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := FetchStatus(t.Context(), s.URL)
		runtime.ReadMemStats(&after)
		s.CloseClientConnections()
		s.Close()
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, without %q", name, err, tt.want)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 16*maxStatus {
			t.Errorf("%s: it took %d bytes", name, took)
		}
	}
}

// TestJobPacketsOfOthers checks that garbage causes an error, instead of being taken for a recording without
// packets.
func TestJobPacketsOfOthers(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want string
	}{
		"nothing": {"", ""},
		"garbage": {strings.Repeat("garbage ", 1000), "rank 3"},
		"a word":  {"garbage", "rank 3"},
	} {
		ctx, stop := context.WithCancel(t.Context())
		s := &JobPackets{ctx: ctx, ranks: map[netip.AddrPort]int{}, incoming: make(chan jobRecord), stop: stop}
		go func() {
			s.read(ctx, 3, io.NopCloser(bytes.NewReader([]byte(tt.text))))
			close(s.incoming)
		}()
		var u pcapng.Unit
		err := s.Next(&u)
		if tt.want == "" && err != io.EOF || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, without %q", name, err, tt.want)
		}
		stop()
	}
}
