package manifests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// TestConfigurations checks that zrlmpid accepts the configurations of every variant, and that every pod has a
// configuration at the path passed to zrlmpid.
func TestConfigurations(t *testing.T) {
	program := filepath.Join(t.TempDir(), "zrlmpid")
	cmd := exec.Command("go", "build", "-o", program, "./cmd/zrlmpid")
	cmd.Dir = "../../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, values := range variants(t) {
		t.Run(name, func(t *testing.T) {
			objects, err := decode(decoder(t), mustRender(t, values))
			if err != nil {
				t.Fatal(err)
			}
			pod := &only[*appsv1.StatefulSet](t, objects).Spec.Template.Spec
			files := configMaps(objects)[pod.Volumes[0].ConfigMap.Name].Data
			into := t.TempDir()
			for name, text := range files {
				path := filepath.Join(into, name)
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				out, err := exec.Command(program, "-config", path, "-check-config").CombinedOutput()
				if err != nil || strings.Contains(string(out), "warning") {
					t.Errorf("%s: %v\n%s", name, err, out)
				}
			}
			c := &pod.Containers[0]
			path := c.Args[slices.Index(c.Args, "--config")+1]
			dir, name := filepath.Split(path)
			if dir != c.VolumeMounts[0].MountPath+"/" {
				t.Errorf("the configuration %s is not in %s", path, c.VolumeMounts[0].MountPath)
			}
			if name == "$(NODE_NAME).yaml" {
				if len(files) != int(*only[*appsv1.StatefulSet](t, objects).Spec.Replicas) {
					t.Errorf("%d configurations for the pods", len(files))
				}
				if !strings.Contains(fmt.Sprint(c.Env), "NODE_NAME") {
					t.Errorf("no NODE_NAME in %v", c.Env)
				}
			} else if files[name] == "" {
				t.Errorf("no %s in the ConfigMap", name)
			}
		})
	}
}
