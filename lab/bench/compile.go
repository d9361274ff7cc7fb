package bench

import (
	"context"
	"embed"
	"os"
	"path/filepath"
	"strings"
)

//go:embed c
var sources embed.FS

// compiler compiles C programs. It compiles each source only once.
type compiler struct {
	name string
	args []string
	dir  string
	made map[string]string
}

func newCompiler(dir, name string, args ...string) *compiler {
	return &compiler{name: name, args: args, dir: dir, made: map[string]string{}}
}

// compile returns the path of the program compiled from a source.
func (c *compiler) compile(ctx context.Context, source string) (string, error) {
	if path, ok := c.made[source]; ok {
		return path, nil
	}
	if err := unpack(c.dir); err != nil {
		return "", err
	}
	path := filepath.Join(c.dir, strings.TrimSuffix(source, ".c")+"-"+filepath.Base(c.name))
	args := append([]string{"-O2", "-o", path, filepath.Join(c.dir, source)}, c.args...)
	if err := command(ctx, c.name, args...).run(); err != nil {
		return "", err
	}
	c.made[source] = path
	return path, nil
}

// unpack writes all sources into a folder.
func unpack(dir string) error {
	entries, err := sources.ReadDir("c")
	if err != nil {
		return err
	}
	for _, e := range entries {
		text, err := sources.ReadFile("c/" + e.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, e.Name()), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
