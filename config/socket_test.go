package config

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFirstSocket checks that the user's own daemon comes before the system's.
func TestFirstSocket(t *testing.T) {
	dir := t.TempDir()
	own, service := filepath.Join(dir, "own"), filepath.Join(dir, "service")
	for _, tt := range []struct {
		there []string
		want  string
	}{{nil, own}, {[]string{service}, service}, {[]string{own}, own}} {
		for _, path := range tt.there {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := firstSocket(own, service); got != tt.want {
			t.Errorf("with %v: %s", tt.there, got)
		}
	}
}
