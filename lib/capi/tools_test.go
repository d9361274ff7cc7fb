package capi

import (
	"strings"
	"testing"
	"unsafe"
)

// TestTools checks that the tools interface has no variables, and returns the standard's errors for this.
func TestTools(t *testing.T) {
	onProcesses(t, 1, func(r *rank) {
		n, session := new(int32), new(int64)
		at, sessionAt := unsafe.Pointer(n), unsafe.Pointer(session)
		expect := func(want, name string, list ...any) {
			t.Helper()
			code := r.call(name, list...)
			if code != int(r.l.abi.constants[want]) {
				t.Errorf("%s: %s: %d, not %s", r.abi, name, code, want)
			}
			if text, ok := r.l.codes.text(code); !ok || code != 0 && text != "MPI_"+want {
				t.Errorf("%s: the text of %s is %q", r.abi, want, text)
			}
		}
		expect("T_ERR_NOT_INITIALIZED", "T_cvar_get_num", at)
		r.ok("T_init_thread", "THREAD_SINGLE", at)
		if *n != int32(r.l.abi.constants["THREAD_MULTIPLE"]) {
			t.Errorf("provided %d", *n)
		}
		r.ok("Init", nil, nil)
		for _, name := range []string{"T_cvar_get_num", "T_pvar_get_num", "T_category_get_num", "T_event_get_num",
			"T_source_get_num", "T_category_changed"} {
			*n = 9
			if r.ok(name, at); *n != 0 {
				t.Errorf("%s: %d", name, *n)
			}
		}
		expect("T_ERR_INVALID_NAME", "T_cvar_get_index", unsafe.Pointer(unsafe.StringData("none\x00")), at)
		expect("T_ERR_INVALID_INDEX", "T_cvar_handle_alloc", 0, nil, at, at)
		expect("T_ERR_INVALID_HANDLE", "T_cvar_read", 1, at)
		expect("T_ERR_INVALID_SESSION", "T_pvar_start", 0, "T_PVAR_ALL_HANDLES")
		r.ok("T_pvar_session_create", sessionAt)
		r.ok("T_pvar_start", int(*session), "T_PVAR_ALL_HANDLES")
		expect("T_ERR_INVALID_HANDLE", "T_pvar_start", int(*session), 7)
		expect("T_ERR_INVALID_INDEX", "T_pvar_handle_alloc", int(*session), 0, nil, at, at)
		r.ok("T_pvar_session_free", sessionAt)
		expect("T_ERR_INVALID_SESSION", "T_pvar_session_free", sessionAt)
		r.ok("Finalize")
		r.ok("T_finalize")
		expect("T_ERR_NOT_INITIALIZED", "T_finalize")
		if calls := r.back.calls; len(calls) != 0 {
			t.Errorf("error handlers were called: %v", calls)
		}
	})
}

// TestToolsAreComplete checks that no call of the tools interface is missing.
func TestToolsAreComplete(t *testing.T) {
	for i, c := range callTable() {
		if c.impl == nil && strings.HasPrefix(c.name, "T_") {
			t.Errorf("call %d, %s, is missing", i, c.name)
		}
	}
}
