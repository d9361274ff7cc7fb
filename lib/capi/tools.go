package capi

import (
	"strings"
	"sync"
)

// tools is the state of the tools interface, whose calls begin with MPI_T_. As the standard permits, the interface has
// no variables, categories, events or sources, and therefore no handles for these; this library reports its counters as
// metrics.
type tools struct {
	mu          sync.Mutex
	users       int // number of initializations minus finalizations
	sessions    map[int64]bool
	lastSession int64 // number of the last session
}

var _ = add(toolCalls())

// toolCalls returns the calls of the tools interface. Most fail, with the error for an index, name or handle that does
// not exist; calls for a number of variables return 0.
func toolCalls() map[string]implementation {
	calls := map[string]implementation{"T_init_thread": (*args).toolsInit}
	for name, f := range map[string]implementation{
		"T_finalize": func(a *args) { a.lib.tools.users-- },

		"T_pvar_session_create": (*args).toolSessionCreate,
		"T_pvar_session_free":   (*args).toolSessionFree,
		"T_pvar_start":          (*args).toolAllHandles,
		"T_pvar_stop":           (*args).toolAllHandles,
		"T_pvar_reset":          (*args).toolAllHandles,
		"T_pvar_handle_alloc":   func(a *args) { a.toolSession("T_ERR_INVALID_INDEX") },
		"T_pvar_read":           (*args).toolHandle,
		"T_pvar_readreset":      (*args).toolHandle,
		"T_pvar_write":          (*args).toolHandle,
		"T_pvar_handle_free":    (*args).toolHandle,
	} {
		calls[name] = func(a *args) { a.runTool(f) }
	}
	for name := range strings.FieldsSeq("cvar_get_num pvar_get_num category_get_num category_changed event_get_num " +
		"source_get_num") {
		calls["T_"+name] = func(a *args) { a.runTool(func(a *args) { a.setInt(0, 0) }) }
	}
	for class, names := range map[string]string{
		"T_ERR_INVALID_NAME": "cvar_get_index pvar_get_index category_get_index event_get_index",
		"T_ERR_INVALID_INDEX": "cvar_get_info pvar_get_info category_get_info category_get_cvars category_get_pvars " +
			"category_get_events " +
			"category_get_categories category_get_num_events event_get_info source_get_info source_get_timestamp " +
			"cvar_handle_alloc event_handle_alloc",
		"T_ERR_INVALID_HANDLE": "enum_get_info enum_get_item cvar_handle_free cvar_read cvar_write " +
			"event_callback_get_info event_callback_set_info " +
			"event_copy event_get_source event_get_timestamp event_handle_free event_handle_get_info " +
			"event_handle_set_info event_read " +
			"event_register_callback event_set_dropped_handler",
	} {
		for name := range strings.FieldsSeq(names) {
			calls["T_"+name] = func(a *args) { a.runTool(toolError(class)) }
		}
	}
	return calls
}

// toolError returns the implementation of a call that always fails with the given error.
func toolError(name string) implementation {
	return func(a *args) { panic(failure{&codedError{int(a.lib.abi.constants[name]), "MPI_" + name}}) }
}

// runTool performs a call of the tools interface. Errors are only returned to the caller.
func (a *args) runTool(f implementation) {
	a.skipHandler = true
	a.lib.tools.mu.Lock()
	defer a.lib.tools.mu.Unlock()
	if a.lib.tools.users == 0 {
		f = toolError("T_ERR_NOT_INITIALIZED")
	}
	f(a)
}

// toolsInit implements MPI_T_init_thread(required, provided).
func (a *args) toolsInit() {
	a.skipHandler = true
	a.setInt(1, int(a.lib.abi.constants["THREAD_MULTIPLE"]))
	a.lib.tools.mu.Lock()
	defer a.lib.tools.mu.Unlock()
	a.lib.tools.users++
}

// toolSessionCreate implements MPI_T_pvar_session_create. Session handles are pointers in both ABIs.
func (a *args) toolSessionCreate() {
	t := &a.lib.tools
	if t.sessions == nil {
		t.sessions = map[int64]bool{}
	}
	t.lastSession++
	t.sessions[t.lastSession] = true
	a.setWord(0, t.lastSession)
}

func (a *args) toolSessionFree() {
	session := *(*int64)(a.checkedPointer(0))
	if !a.lib.tools.sessions[session] {
		toolError("T_ERR_INVALID_SESSION")(a)
	}
	delete(a.lib.tools.sessions, session)
	a.setWord(0, a.lib.abi.constants["T_PVAR_SESSION_NULL"])
}

// toolSession fails a call with the named error or, if the session of the call is invalid, with T_ERR_INVALID_SESSION.
func (a *args) toolSession(name string) {
	if !a.lib.tools.sessions[a.count(0)] {
		name = "T_ERR_INVALID_SESSION"
	}
	toolError(name)(a)
}

func (a *args) toolHandle() { a.toolSession("T_ERR_INVALID_HANDLE") }

// toolAllHandles implements calls with the arguments session and handle. They succeed for
// MPI_T_PVAR_ALL_HANDLES; no other handle exists.
func (a *args) toolAllHandles() {
	if a.lib.tools.sessions[a.count(0)] && a.count(1) == a.lib.abi.constants["T_PVAR_ALL_HANDLES"] {
		return
	}
	a.toolHandle()
}
