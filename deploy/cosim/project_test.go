package cosim

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/config"
)

func TestWrite(t *testing.T) {
	for _, lang := range Languages {
		dir := filepath.Join(t.TempDir(), "a", lang)
		written, err := Write(dir, lang, "/opt/bin")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{languages[lang].role, "Makefile", "cluster.yaml", "README.md", "cosim/targets.mk", "cosim/echo.sh", "cosim/zrlmpi_cosim.c", "cosim/zrlmpi_cosim.h"} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || regexp.MustCompile("@[A-Z]+@").Match(text) {
				t.Errorf("%s: %s: %v\n%s", lang, name, err, text)
			}
			if !slices.Contains(written, filepath.Join(dir, name)) {
				t.Errorf("%s: %s is not among %v", lang, name, written)
			}
		}
		cfg, err := config.Load(filepath.Join(dir, "cluster.yaml"))
		want := config.KernelRTL
		if strings.HasSuffix(lang, "-mpe") {
			want = config.KernelRTLNet
		}
		if err != nil || cfg.Ranks[1].Kernel.Name != want {
			t.Errorf("%s: %v", lang, err)
		}
		if err := os.WriteFile(filepath.Join(dir, "Makefile"), []byte("mine"), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "README.md")); err != nil {
			t.Fatal(err)
		}
		_, err = Write(dir, lang, "/opt/bin")
		if !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "name another folder") {
			t.Errorf("%s, once more: %v", lang, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "README.md")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: files are written beside those that exist", lang)
		}
	}
	if _, err := Write(t.TempDir(), "ada", ""); err == nil || !strings.Contains(err.Error(), "verilog, vhdl, hls, verilog-mpe, vhdl-mpe") {
		t.Errorf("another language: %v", err)
	}
}
