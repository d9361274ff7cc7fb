package web

import (
	"errors"
	"fmt"
	"syscall"
)

// ListenError is the error of an address that cannot be had.
type ListenError struct {
	// Address is the one that was asked for.
	Address string
	Err     error
}

// Error says what to do.
func (e *ListenError) Error() string {
	what := fmt.Sprintf("http: listening at %s: %v", e.Address, e.Err)
	switch {
	case errors.Is(e.Err, syscall.EADDRINUSE):
		what = fmt.Sprintf("http: %s is in use: another program, or another zrlmpid, listens there", e.Address)
	case errors.Is(e.Err, syscall.EADDRNOTAVAIL):
		what = fmt.Sprintf("http: %s is no address of this host", e.Address)
	case errors.Is(e.Err, syscall.EACCES):
		what = fmt.Sprintf("http: this user must not listen at %s", e.Address)
	}
	return what + `: set http.listen to another address, or to "" for no HTTP`
}

func (e *ListenError) Unwrap() error { return e.Err }

// ConfigError is the error of a web configuration file.
type ConfigError struct {
	Path string
	Err  error
}

// Error names the file.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("http.web_config: %s: %v", e.Path, e.Err)
}

func (e *ConfigError) Unwrap() error { return e.Err }
