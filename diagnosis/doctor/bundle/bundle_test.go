package bundle_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/diagnosis/doctor/bundle"
)

func TestWrite(t *testing.T) {
	var b bytes.Buffer
	now := time.Unix(1_700_000_000, 0)
	err := bundle.Write(&b, []bundle.Part{
		{Name: "a.txt", Content: []byte("first")}, {Name: "b.txt", Missing: errors.New("there is none")},
		{Name: "c.txt", Content: []byte("third")},
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(r)
		got = append(got, h.Name+" "+string(text))
		if h.Mode != 0o600 || !h.ModTime.Equal(now) {
			t.Errorf("%+v", h)
		}
	}
	if want := "zrlmpid-bundle/a.txt first, zrlmpid-bundle/c.txt third"; strings.Join(got, ", ") != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestSecrets checks that a bundle contains no possible secrets, and that the original is unchanged.
func TestSecrets(t *testing.T) {
	cfg, err := config.Parse(strings.NewReader(`
# password of the comment
ranks:
  - {rank: 0, address: 127.0.0.1, run: host}
  - {rank: 1, address: 127.0.0.2, run: standin, kernel: "exec:/opt/kernel --password of-the-kernel"}
`), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := bundle.Configuration(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "password") ||
		!strings.Contains(string(text), "exec:/opt/kernel (arguments removed)") {
		t.Errorf("%s", text)
	}
	if command := cfg.Ranks[1].Kernel.Command; command[len(command)-1] != "of-the-kernel" {
		t.Errorf("the configuration has changed: %v", command)
	}
}
