package config

import "github.com/zrlmpi/zrlmpid/internal/strictyaml"

// Error is a single problem of a configuration. Parse, Load and Validate join several of them: errors.As finds the
// first.
type Error = strictyaml.Error

// source maps the keys of the file to lines. It is empty in a Config made by New.
type source struct {
	strictyaml.Source
	// httpExplicit is set if http.listen was given by the environment, a flag or the program.
	httpExplicit bool
}
