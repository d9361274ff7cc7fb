package web

import (
	"errors"
	"fmt"
	"syscall"
)

// ListenError reports that the server cannot bind an address.
type ListenError struct {
	Address string
	Err     error
}

// Error states the address, the cause and a remedy.
func (e *ListenError) Error() string {
	what := fmt.Sprintf("http: listening at %s: %v", e.Address, e.Err)
	switch {
	case errors.Is(e.Err, syscall.EADDRINUSE):
		what = fmt.Sprintf("http: %s is in use by another program or another zrlmpid", e.Address)
	case errors.Is(e.Err, syscall.EADDRNOTAVAIL):
		what = fmt.Sprintf("http: %s is not an address of this host", e.Address)
	case errors.Is(e.Err, syscall.EACCES):
		what = fmt.Sprintf("http: this user may not listen at %s", e.Address)
	}
	return what + `: set http.listen to another address, or to "" to disable HTTP`
}

func (e *ListenError) Unwrap() error { return e.Err }

// ConfigError reports an invalid web configuration file.
type ConfigError struct {
	Path string
	Err  error
}

// Error states the name of the file and the cause.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("http.web_config: %s: %v", e.Path, e.Err)
}

func (e *ConfigError) Unwrap() error { return e.Err }
