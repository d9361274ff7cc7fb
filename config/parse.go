package config

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
)

// Environment variables that override the file.
const (
	EnvLogLevel      = "ZRLMPID_LOG_LEVEL"
	EnvControlSocket = "ZRLMPID_CONTROL_SOCKET"
	EnvHTTPListen    = "ZRLMPID_HTTP_LISTEN"
	// EnvOffload lacks the D in its prefix, because programs that run a rank without a configuration file also read it
	// (udp.EnvOffload).
	EnvOffload = "ZRLMPI_OFFLOAD"
	// EnvCollectives and EnvCollectivesTable lack the D in their prefix for the same reason.
	EnvCollectives      = "ZRLMPI_COLLECTIVES"
	EnvCollectivesTable = "ZRLMPI_COLLECTIVES_TABLE"
)

// Load reads and validates the file at path, resolves relative paths against its folder, and applies the environment.
func Load(path string) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()
	config, err := Parse(f, path)
	if err != nil {
		return nil, err
	}
	files := []*string{&config.HTTP.WebConfig, &config.Collectives.Table}
	if t := config.TLS; t != nil {
		files = append(files, &t.Certificate, &t.Key, &t.Authority)
	}
	if d := config.Record.Spool.Directory; d != nil {
		files = append(files, d)
	}
	for _, file := range files {
		if *file != "" && !filepath.IsAbs(*file) {
			*file = filepath.Join(filepath.Dir(path), *file)
		}
	}
	if err := config.ApplyEnv(os.LookupEnv); err != nil {
		return nil, err
	}
	return config, nil
}

// Parse reads and validates a configuration and fills in its defaults. name is the file name for errors. The error
// joins *Error values, or wraps strictyaml.ErrTooLarge or the reader's error.
func Parse(r io.Reader, name string) (*Config, error) {
	config := new(Config)
	config.setDefaults()
	var err error
	if config.source.Source, err = strictyaml.Decode(r, name, config); err != nil {
		return nil, err
	}
	config.setDerived()
	if err := config.Validate(); err != nil {
		return nil, err
	}
	return config, nil
}

// ApplyEnv overrides the configuration by environment variables: EnvLogLevel, EnvOffload, EnvCollectives and
// EnvCollectivesTable if they are not empty, and EnvControlSocket and EnvHTTPListen if they are set, where "" disables
// the socket or server. lookup is os.LookupEnv.
func (c *Config) ApplyEnv(lookup func(string) (string, bool)) error {
	if level, _ := lookup(EnvLogLevel); level != "" {
		if !slices.Contains(logLevels, level) {
			return &Error{Key: EnvLogLevel, Problem: describeUnknown(level, logLevels)}
		}
		c.Log.Level = level
	}
	if value, _ := lookup(EnvOffload); value != "" {
		if !slices.Contains(offloadModes, value) {
			return &Error{Key: EnvOffload, Problem: describeUnknown(value, offloadModes)}
		}
		c.Limits.Offload = value
	}
	if socket, set := lookup(EnvControlSocket); set {
		if problem := socketProblem(socket); problem != "" {
			return &Error{Key: EnvControlSocket, Problem: problem}
		}
		c.Control.Socket = &socket
	}
	if listen, set := lookup(EnvHTTPListen); set {
		if problem := listenProblem(listen); problem != "" {
			return &Error{Key: EnvHTTPListen, Problem: problem}
		}
		c.SetHTTPListen(listen)
	}
	return c.Collectives.ApplyEnv(lookup)
}

// YAML returns the configuration as the text of a file, which Parse converts back to an equal configuration. It leaves
// out defaults that depend on the session or host of the reader, or on both ranks of a link.
func (c *Config) YAML() ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(c); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return b.Bytes(), nil
}
