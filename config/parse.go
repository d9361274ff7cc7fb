package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// MaxFileSize is the largest configuration file in bytes. A cluster of a
// thousand ranks fills a tenth of it.
const MaxFileSize = 1 << 20

// The environment variables that override the file.
const (
	EnvLogLevel      = "ZRLMPID_LOG_LEVEL"
	EnvControlSocket = "ZRLMPID_CONTROL_SOCKET"
	EnvHTTPListen    = "ZRLMPID_HTTP_LISTEN"
	// EnvOffload is without the D: programs that are ranks themselves, and have
	// no file, heed it as well (udp.EnvOffload).
	EnvOffload = "ZRLMPI_OFFLOAD"
)

// Load reads the file at path, checks it, makes the paths in it those of files in
// its folder, and applies the environment.
func Load(path string) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()
	c, err := Parse(f, path)
	if err != nil {
		return nil, err
	}
	c.TLS.relativeTo(filepath.Dir(path))
	c.HTTP.relativeTo(filepath.Dir(path))
	if err := c.ApplyEnv(os.LookupEnv); err != nil {
		return nil, err
	}
	return c, nil
}

// Parse reads and checks a configuration and fills in its defaults. name is the
// file's name in errors, which are *Error joined, or wrap ErrTooLarge or the
// reader's error.
func Parse(r io.Reader, name string) (*Config, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxFileSize+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(text) > MaxFileSize {
		return nil, fmt.Errorf("%s: %w", name, ErrTooLarge)
	}
	root, err := document(text, name)
	if err != nil {
		return nil, err
	}
	c := new(Config)
	c.setDefaults()
	c.source = source{file: name, lines: make(map[string]int)}
	d := decoder{problems{source: &c.source}}
	if root != nil {
		d.value(root, reflect.ValueOf(c).Elem(), "")
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	c.complete()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return c, nil
}

// document returns the root of the only document in text, or nil if there is
// none.
func document(text []byte, name string) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, next yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, syntaxError(name, err)
	}
	switch err := dec.Decode(&next); {
	case err == nil:
		return nil, &Error{File: name, Line: next.Line,
			Problem: "a second document starts here: a configuration is one document, so remove the --- or what follows it"}
	case !errors.Is(err, io.EOF):
		return nil, syntaxError(name, err)
	}
	return doc.Content[0], nil
}

// The YAML library tells the line of a syntax error in its text only.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

func syntaxError(name string, err error) error {
	text := err.Error()
	e := &Error{File: name}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	e.Problem = "not valid YAML: " + text
	return e
}

// ApplyEnv overrides the configuration by the environment: EnvLogLevel and
// EnvOffload unless they are empty, and EnvControlSocket and EnvHTTPListen, where
// empty means none. lookup is os.LookupEnv.
func (c *Config) ApplyEnv(lookup func(string) (string, bool)) error {
	if level, _ := lookup(EnvLogLevel); level != "" {
		if !slices.Contains(levels, level) {
			return &Error{Key: EnvLogLevel, Problem: notOneOf(level, levels)}
		}
		c.Log.Level = level
	}
	if value, _ := lookup(EnvOffload); value != "" {
		if !slices.Contains(offload, value) {
			return &Error{Key: EnvOffload, Problem: notOneOf(value, offload)}
		}
		c.Limits.Offload = value
	}
	if socket, set := lookup(EnvControlSocket); set {
		if problem := socketProblem(socket); problem != "" {
			return &Error{Key: EnvControlSocket, Problem: problem}
		}
		c.Control.Socket = socket
	}
	if listen, set := lookup(EnvHTTPListen); set {
		if problem := listenProblem(listen); problem != "" {
			return &Error{Key: EnvHTTPListen, Problem: problem}
		}
		c.ListenHTTP(listen)
	}
	return nil
}

// YAML returns the configuration as a file that Parse reads as the same one.
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
