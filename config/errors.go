package config

import "github.com/zrlmpi/zrlmpid/internal/strictyaml"

// Error is one thing that is wrong with a configuration. Parse, Load and
// Validate return several of them joined: errors.As finds the first.
type Error = strictyaml.Error

// source has the line of each key of the file. A Config made by New has none.
type source struct {
	strictyaml.Source
	// http: http.listen was given by the environment, a flag or the program.
	http bool
}
