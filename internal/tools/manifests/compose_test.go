package manifests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	composetypes "github.com/compose-spec/compose-go/v2/types"
)

const docker = "../../../deploy/docker"

func load(t *testing.T, text []byte) (*composetypes.Project, error) {
	t.Helper()
	folder, err := filepath.Abs(docker)
	if err != nil {
		t.Fatal(err)
	}
	return loader.LoadWithContext(t.Context(), composetypes.ConfigDetails{
		WorkingDir: folder, Environment: composetypes.Mapping{},
		ConfigFiles: []composetypes.ConfigFile{{Filename: filepath.Join(folder, "compose.yaml"), Content: text}},
	})
}

// TestCompose checks that the compose file is valid, and that the files that it mounts exist.
func TestCompose(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(docker, "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	project, err := load(t, text)
	if err != nil {
		t.Fatal(err)
	}
	mounts := 0
	for name, service := range project.Services {
		for _, v := range service.Volumes {
			if v.Type == composetypes.VolumeTypeBind {
				exists(t, name, v.Source)
				mounts++
			}
		}
		for _, p := range service.Ports {
			if p.HostIP != "127.0.0.1" {
				t.Errorf("service %s opens port %s to others", name, p.Published)
			}
		}
	}
	if len(project.Services) != 3 || mounts < 5 {
		t.Errorf("%d services, %d mounts", len(project.Services), mounts)
	}
	for from, to := range map[string]string{"read_only": "readonly", "depends_on": "depend_on", "tmpfs: [": "tempfs: [",
		"condition: service_healthy": "condition: healthy"} {
		bad := strings.ReplaceAll(string(text), from, to)
		if bad == string(text) {
			t.Errorf("%q is not in the file", from)
		}
		if _, err := load(t, []byte(bad)); err == nil {
			t.Errorf("%q is taken", to)
		}
	}
}

func exists(t *testing.T, service, path string) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("service %s needs what is not there: %v", service, err)
	}
}
