package web

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"

	toolkit "github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"
)

// webConfig is a web configuration file, together with the certificate and key files named in it. The exporter toolkit
// rereads its configuration for every connection and request, and would reject all of them while one of the files is
// invalid. webConfig therefore gives the toolkit a copy, and replaces the copy only when the files have changed and are
// valid.
type webConfig struct {
	file string
	log  *slog.Logger
	// tls is set if the server was started with TLS. A reload cannot enable or disable TLS.
	tls bool
	// validCopy is the copy that the toolkit reads. It is nil if the system does not support unnamed files; the toolkit
	// then reads the configuration file directly.
	validCopy *memoryFile
	failures  atomic.Uint64

	mu sync.Mutex
	// lastResult is the result of the most recent read: the text of the valid copy, or the text of the error.
	lastResult string
}

// newWebConfig reads a web configuration. The error is a *ConfigError.
func newWebConfig(file string, log *slog.Logger) (*webConfig, error) {
	config := &webConfig{file: file, log: log}
	text, tls, err := inlineFiles(file)
	if err == nil {
		config.tls, config.lastResult = tls, string(text)
		config.validCopy, err = newValidCopy(text)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		err = toolkit.Validate(file)
	}
	if err != nil {
		return nil, &ConfigError{file, redact(err)}
	}
	return config, nil
}

// CheckConfig checks a web configuration and the files named in it. The error is a *ConfigError.
func CheckConfig(file string) error {
	c, err := newWebConfig(file, nil)
	if err == nil && c.validCopy != nil {
		c.validCopy.Close()
	}
	return err
}

// path returns the path of the file that the toolkit must read.
func (c *webConfig) path() string {
	if c.validCopy == nil {
		return c.file
	}
	return c.validCopy.path()
}

// refresh rereads the files. If they have changed, refresh applies them, or logs why it cannot and counts a failure. It
// is safe for concurrent use.
func (c *webConfig) refresh() {
	if c.validCopy == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	text, tls, err := inlineFiles(c.file)
	now := string(text)
	if err != nil {
		now = err.Error()
	}
	if now == c.lastResult {
		return
	}
	c.lastResult = now
	if err == nil {
		err = c.replace(text, tls)
	}
	if err != nil {
		c.failures.Add(1)
		c.log.Error("web configuration refused, the previous one remains in use", "file", c.file, "error",
			redact(err))
		return
	}
	c.log.Info("web configuration reloaded", "file", c.file)
}

// replace replaces the toolkit's copy of the configuration with text if text is valid.
func (c *webConfig) replace(text []byte, tls bool) error {
	next, err := newValidCopy(text)
	if err != nil {
		return err
	}
	defer next.Close()
	if tls != c.tls {
		return errors.New("a restart is needed to enable or disable TLS")
	}
	return c.validCopy.become(next)
}

// newValidCopy returns a file that contains text, or an error if the toolkit rejects the text.
func newValidCopy(text []byte) (*memoryFile, error) {
	file, err := newMemoryFile(text)
	if err != nil {
		return nil, err
	}
	if err := toolkit.Validate(file.path()); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// inlinedKeys lists the keys whose values name files, and the corresponding keys whose values are the contents of such
// files.
var inlinedKeys = []struct{ file, content string }{
	{"cert_file", "cert"}, {"key_file", "key"}, {"client_ca_file", "client_ca"},
}

// inlineFiles returns a web configuration with the contents of all named files inlined, and reports whether it enables
// TLS. It leaves invalid content in place for the toolkit to report.
func inlineFiles(path string) (text []byte, tls bool, err error) {
	if text, err = os.ReadFile(path); err != nil {
		return nil, false, err
	}
	var c map[string]any
	if err := yaml.Unmarshal(text, &c); err != nil {
		return nil, false, err
	}
	section, _ := c["tls_server_config"].(map[string]any)
	for _, key := range inlinedKeys {
		name, ok := section[key.file].(string)
		if !ok || name == "" {
			continue
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(path), name)
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, false, fmt.Errorf("%s: %w", key.file, err)
		}
		// A file without certificates must be rejected, because the toolkit treats it as an authority that trusts no
		// client.
		if key.content == "client_ca" && !x509.NewCertPool().AppendCertsFromPEM(content) {
			return nil, false, fmt.Errorf("%s: %s has no certificate", key.file, name)
		}
		delete(section, key.file)
		section[key.content] = string(content)
	}
	text, err = yaml.Marshal(c)
	return text, len(section) > 0, err
}

// quotedValues matches the values that YAML libraries quote in their errors.
var quotedValues = regexp.MustCompile("`[^`]*`")

// redact returns err without values from the file, because they may be passwords or keys.
func redact(err error) error {
	if text := err.Error(); quotedValues.MatchString(text) {
		return errors.New(quotedValues.ReplaceAllString(text, "a value"))
	}
	return err
}
