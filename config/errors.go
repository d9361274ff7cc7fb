package config

import "github.com/zrlmpi/zrlmpid/internal/strictyaml"

// Error is a single problem of a configuration. Parse, Load and Validate join one Error for each problem, so that
// errors.As finds the first.
type Error = strictyaml.Error

// source maps keys to their lines in the file. It is empty in a Config made by New.
type source struct {
	strictyaml.Source
	// httpExplicit is set if the environment, a flag or the program set http.listen.
	httpExplicit bool
}
