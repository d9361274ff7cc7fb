package manifests

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	composetypes "github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

const docker = "../../../deploy/docker"

// parse parses a Dockerfile in the way Docker does.
func parse(text []byte, lint *linter.Linter) ([]instructions.Stage, error) {
	result, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	stages, _, err := instructions.Parse(result.AST, lint)
	return stages, err
}

func dockerfile(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(docker, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestDockerfile(t *testing.T) {
	lint := linter.New(&linter.Config{Warn: func(rule, description, _, message string, _ []parser.Range) {
		t.Errorf("%s: %s (%s)", rule, message, description)
	}})
	stages, err := parse(dockerfile(t), lint)
	if err != nil {
		t.Fatal(err)
	}
	if len(stages) != 2 || stages[0].Name != "build" || stages[1].BaseName != "scratch" {
		t.Fatalf("stages: %+v", stages)
	}
	labels := make(map[string]string)
	var user string
	health, stops := false, false
	for _, command := range stages[1].Commands {
		switch c := command.(type) {
		case *instructions.UserCommand:
			user = c.User
		case *instructions.HealthCheckCommand:
			health = slices.Equal(c.Health.Test, []string{"CMD", "/usr/bin/zrlctl", "status"})
		case *instructions.StopSignalCommand:
			stops = c.Signal == "SIGTERM"
		case *instructions.LabelCommand:
			for _, l := range c.Labels {
				labels[l.Key] = l.Value
			}
		case *instructions.EntrypointCommand:
			if c.PrependShell {
				t.Error("there is no shell for the entry point")
			}
		case *instructions.CmdCommand:
			if c.PrependShell {
				t.Error("there is no shell for the arguments")
			}
		case *instructions.RunCommand:
			t.Error("there is nothing that could run in the image")
		}
	}
	if user != "65532:65532" || !health || !stops {
		t.Errorf("user %q; health check %v; signal %v", user, health, stops)
	}
	for _, label := range []string{"title", "description", "source", "version", "revision"} {
		if labels["org.opencontainers.image."+label] == "" {
			t.Errorf("no label %s in %q", label, labels)
		}
	}
}

// TestDockerfileMistakes checks that parse detects mistakes.
func TestDockerfileMistakes(t *testing.T) {
	good := string(dockerfile(t))
	for from, to := range map[string]string{"--interval=": "--intervall=", "ENTRYPOINT": "ENTRY_POINT",
		"--chown=": "--owner=", "EXPOSE 2718/udp 2718/tcp 9627/tcp": "EXPOSE"} {
		bad := strings.ReplaceAll(good, from, to)
		if bad == good {
			t.Errorf("%q is not in the Dockerfile", from)
		}
		if _, err := parse([]byte(bad), nil); err == nil {
			t.Errorf("%q is taken", to)
		}
	}
}

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
		if b := service.Build; b != nil {
			exists(t, name, filepath.Join(b.Context, b.Dockerfile))
		}
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
