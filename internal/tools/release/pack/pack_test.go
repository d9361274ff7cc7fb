package pack_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/tools/release/pack"
)

// TestRefused checks that settings which are not supported cause errors and are not ignored.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		name, nfpm, want string
		unsupported      bool
	}{
		{"a setting", "epoch: '2'", "that package pack does not know", true},
		{"another time", "mtime: '2026-01-01T00:00:00Z'", "that package pack does not know", true},
		{"of contents", "contents: [{src: a, dst: /a, file_info: {owner: me}}]", "contents other than", true},
		{"of overrides", "overrides: {deb: {conflicts: [other]}}", "overrides other than", true},
		{"an unknown key", "maintainers: me", "maintainers", false},
		{"a file that is not there", "contents: [{src: no/such/file, dst: /a}]", "no/such/file", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			config := filepath.Join(t.TempDir(), "goreleaser.yaml")
			text := "version: 2\nnfpms:\n  - package_name: thing\n    formats: [deb]\n    maintainer: me " +
				"<me@example.com>\n    " + tt.nfpm + "\n"
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := pack.Make(pack.Options{Config: config, Arch: "amd64", Version: "1.0.0", Into: t.TempDir()})
			if err == nil || !strings.Contains(err.Error(), tt.want) ||
				errors.Is(err, pack.ErrUnsupported) != tt.unsupported {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
	config := filepath.Join(t.TempDir(), "none.yaml")
	if err := os.WriteFile(config, []byte("version: 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := pack.Make(pack.Options{Config: config, Into: t.TempDir()}); err == nil ||
		!strings.Contains(err.Error(), "no packages") {
		t.Error(err)
	}
}
