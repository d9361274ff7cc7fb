package capi

import (
	"sync"
)

// tools is the tools interface, whose calls begin with MPI_T_. It has no variables, categories, events or sources, as the standard
// permits: what this library counts is in its metrics. So there are no handles of such either.
type tools struct {
	mu       sync.Mutex
	users    int // of MPI_T_init_thread
	sessions map[int64]bool
	last     int64 // of the sessions
}

var _ = add(toolCalls())

func toolCalls() map[string]implementation {
	calls := map[string]implementation{"T_init_thread": (*args).toolsInit}
	for name, f := range map[string]implementation{
		"T_finalize": func(a *args) error { a.l.tools.users--; return nil },

		"T_cvar_get_num":              func(a *args) error { return a.setInt(0, 0) },
		"T_pvar_get_num":              func(a *args) error { return a.setInt(0, 0) },
		"T_category_get_num":          func(a *args) error { return a.setInt(0, 0) },
		"T_category_changed":          func(a *args) error { return a.setInt(0, 0) },
		"T_event_get_num":             func(a *args) error { return a.setInt(0, 0) },
		"T_source_get_num":            func(a *args) error { return a.setInt(0, 0) },
		"T_pvar_session_create":       (*args).toolSessionCreate,
		"T_pvar_session_free":         (*args).toolSessionFree,
		"T_pvar_start":                (*args).toolAllHandles,
		"T_pvar_stop":                 (*args).toolAllHandles,
		"T_pvar_reset":                (*args).toolAllHandles,
		"T_pvar_handle_alloc":         (*args).toolVariable,
		"T_pvar_read":                 (*args).toolHandle,
		"T_pvar_readreset":            (*args).toolHandle,
		"T_pvar_write":                (*args).toolHandle,
		"T_pvar_handle_free":          (*args).toolHandle,
		"T_cvar_get_index":            toolError("T_ERR_INVALID_NAME"),
		"T_pvar_get_index":            toolError("T_ERR_INVALID_NAME"),
		"T_category_get_index":        toolError("T_ERR_INVALID_NAME"),
		"T_event_get_index":           toolError("T_ERR_INVALID_NAME"),
		"T_cvar_get_info":             toolError("T_ERR_INVALID_INDEX"),
		"T_pvar_get_info":             toolError("T_ERR_INVALID_INDEX"),
		"T_category_get_info":         toolError("T_ERR_INVALID_INDEX"),
		"T_category_get_cvars":        toolError("T_ERR_INVALID_INDEX"),
		"T_category_get_pvars":        toolError("T_ERR_INVALID_INDEX"),
		"T_category_get_events":       toolError("T_ERR_INVALID_INDEX"),
		"T_category_get_categories":   toolError("T_ERR_INVALID_INDEX"),
		"T_category_get_num_events":   toolError("T_ERR_INVALID_INDEX"),
		"T_event_get_info":            toolError("T_ERR_INVALID_INDEX"),
		"T_source_get_info":           toolError("T_ERR_INVALID_INDEX"),
		"T_source_get_timestamp":      toolError("T_ERR_INVALID_INDEX"),
		"T_cvar_handle_alloc":         toolError("T_ERR_INVALID_INDEX"),
		"T_event_handle_alloc":        toolError("T_ERR_INVALID_INDEX"),
		"T_enum_get_info":             toolError("T_ERR_INVALID_HANDLE"),
		"T_enum_get_item":             toolError("T_ERR_INVALID_HANDLE"),
		"T_cvar_handle_free":          toolError("T_ERR_INVALID_HANDLE"),
		"T_cvar_read":                 toolError("T_ERR_INVALID_HANDLE"),
		"T_cvar_write":                toolError("T_ERR_INVALID_HANDLE"),
		"T_event_callback_get_info":   toolError("T_ERR_INVALID_HANDLE"),
		"T_event_callback_set_info":   toolError("T_ERR_INVALID_HANDLE"),
		"T_event_copy":                toolError("T_ERR_INVALID_HANDLE"),
		"T_event_get_source":          toolError("T_ERR_INVALID_HANDLE"),
		"T_event_get_timestamp":       toolError("T_ERR_INVALID_HANDLE"),
		"T_event_handle_free":         toolError("T_ERR_INVALID_HANDLE"),
		"T_event_handle_get_info":     toolError("T_ERR_INVALID_HANDLE"),
		"T_event_handle_set_info":     toolError("T_ERR_INVALID_HANDLE"),
		"T_event_read":                toolError("T_ERR_INVALID_HANDLE"),
		"T_event_register_callback":   toolError("T_ERR_INVALID_HANDLE"),
		"T_event_set_dropped_handler": toolError("T_ERR_INVALID_HANDLE"),
	} {
		calls[name] = func(a *args) error { return a.tool(f) }
	}
	return calls
}

// toolError is a call that fails with an error of the ABI.
func toolError(name string) implementation {
	return func(a *args) error { return &fixedError{int(a.l.abi.constants[name]), "MPI_" + name} }
}

// tool carries out a call of the tools interface. Its errors are the caller's alone.
func (a *args) tool(f implementation) error {
	a.quiet = true
	a.l.tools.mu.Lock()
	defer a.l.tools.mu.Unlock()
	if a.l.tools.users == 0 {
		f = toolError("T_ERR_NOT_INITIALIZED")
	}
	return f(a)
}

// toolsInit: required, provided.
func (a *args) toolsInit() error {
	a.quiet = true
	if err := a.setInt(1, int(a.l.abi.constants["THREAD_MULTIPLE"])); err != nil {
		return err
	}
	a.l.tools.mu.Lock()
	defer a.l.tools.mu.Unlock()
	a.l.tools.users++
	return nil
}

// Handles of sessions are pointers in both ABIs.
func (a *args) toolSessionCreate() error {
	t := &a.l.tools
	if t.sessions == nil {
		t.sessions = map[int64]bool{}
	}
	t.last++
	t.sessions[t.last] = true
	return a.setWord(0, t.last)
}

func (a *args) toolSessionFree() error {
	p, err := a.where(0)
	if err != nil {
		return err
	}
	session := *(*int64)(p)
	if !a.l.tools.sessions[session] {
		return toolError("T_ERR_INVALID_SESSION")(a)
	}
	delete(a.l.tools.sessions, session)
	return a.setWord(0, a.l.abi.constants["T_PVAR_SESSION_NULL"])
}

// toolSession is a call with a session, whose other arguments fail with an error.
func (a *args) toolSession(name string) error {
	if !a.l.tools.sessions[a.count(0)] {
		name = "T_ERR_INVALID_SESSION"
	}
	return toolError(name)(a)
}

func (a *args) toolVariable() error { return a.toolSession("T_ERR_INVALID_INDEX") }
func (a *args) toolHandle() error   { return a.toolSession("T_ERR_INVALID_HANDLE") }

// toolAllHandles: session, handle, which may be all of them.
func (a *args) toolAllHandles() error {
	if a.l.tools.sessions[a.count(0)] && a.count(1) == a.l.abi.constants["T_PVAR_ALL_HANDLES"] {
		return nil
	}
	return a.toolHandle()
}
