package manifests

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yannh/kubeconform/pkg/validator"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

var programs = flag.String("programs", "", "`folder` of kube-apiserver and etcd, for the tests with Kubernetes itself")

// needsKubernetes skips tests that need programs or downloads too large for every run.
func needsKubernetes(t *testing.T) {
	t.Helper()
	if *programs == "" {
		t.Skip("no -programs: make kubernetes-check runs this test")
	}
}

// schemaVersions are versions of Kubernetes whose schemas the manifests are checked against.
var schemaVersions = []string{"1.35.4", "1.36.3", "1.37.2"}

// TestSchemas checks the manifests with kubeconform, against the OpenAPI documents in the Go module of each version.
func TestSchemas(t *testing.T) {
	needsKubernetes(t)
	for _, version := range schemaVersions {
		t.Run(version, func(t *testing.T) {
			folder := writeSchemas(t, version)
			v, err := validator.New([]string{folder + "/{{.ResourceKind}}{{.KindSuffix}}.json"}, validator.Opts{
				Strict:    true,
				SkipKinds: map[string]struct{}{"ServiceMonitor": {}, "PrometheusRule": {}}, // TestObjects decodes these
			})
			if err != nil {
				t.Fatal(err)
			}
			failures := func(text []byte) (failed []string) {
				for _, result := range v.Validate("manifest", io.NopCloser(bytes.NewReader(text))) {
					if result.Status != validator.Valid && result.Status != validator.Skipped {
						failed = append(failed, fmt.Sprint(result.Err))
					}
				}
				return failed
			}
			for name, values := range variants(t) {
				text := mustRender(t, values)
				for _, failure := range failures(text) {
					t.Errorf("%s: %s", name, failure)
				}
				bad := bytes.ReplaceAll(text, []byte("podManagementPolicy:"), []byte("podManagmentPolicy:"))
				if len(failures(bad)) != 1 {
					t.Errorf("%s: a misspelt field is not detected", name)
				}
			}
		})
	}
}

// writeSchemas writes the JSON schemas of a version of Kubernetes into a folder, as kubeconform names them. The schemas
// reject unknown fields.
func writeSchemas(t *testing.T, version string) (folder string) {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", "k8s.io/kubernetes@v"+version)
	cmd.Dir = t.TempDir() // outside of this module
	out, err := cmd.Output()
	var module struct{ Dir, Error string }
	if e := json.Unmarshal(out, &module); err != nil || e != nil || module.Error != "" {
		t.Fatalf("%v, %v, %s", err, e, module.Error)
	}
	folder = t.TempDir()
	for file, kinds := range map[string][]string{
		"api__v1":                     {"core.v1.ConfigMap", "core.v1.Service"},
		"apis__apps__v1":              {"apps.v1.StatefulSet"},
		"apis__policy__v1":            {"policy.v1.PodDisruptionBudget"},
		"apis__networking.k8s.io__v1": {"networking.v1.NetworkPolicy"},
	} {
		text, err := os.ReadFile(filepath.Join(module.Dir, "api/openapi-spec/v3", file+"_openapi.json"))
		if err != nil {
			t.Fatal(err)
		}
		var document map[string]any
		if err := json.Unmarshal(text, &document); err != nil {
			t.Fatal(err)
		}
		rejectUnknownFields(document["components"])
		for _, kind := range kinds {
			parts := strings.Split(kind, ".")
			schema := map[string]any{
				"$ref": "#/components/schemas/io.k8s.api." + kind, "components": document["components"],
			}
			text, err := json.Marshal(schema)
			if err != nil {
				t.Fatal(err)
			}
			suffix := "-" + parts[0] + "-" + parts[1]
			if parts[0] == "core" {
				suffix = "-" + parts[1]
			}
			name := strings.ToLower(parts[2]) + suffix + ".json"
			if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return folder
}

// rejectUnknownFields makes all objects of a schema with known properties reject others.
func rejectUnknownFields(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		if _, ok := s["properties"].(map[string]any); ok && s["type"] == "object" {
			s["additionalProperties"] = false
		}
		for _, part := range s {
			rejectUnknownFields(part)
		}
	case []any:
		for _, part := range s {
			rejectUnknownFields(part)
		}
	}
}

// TestAPIServer creates the objects of each variant in a namespace of the Pod Security level it needs, and a pod from
// the template, which the API server refuses if the level is stricter.
func TestAPIServer(t *testing.T) {
	needsKubernetes(t)
	server := startAPIServer(t)
	for name, level := range map[string]string{
		"standins": "restricted", "all": "restricted", "host-network": "privileged", "xdp": "privileged",
	} {
		t.Run(name, func(t *testing.T) {
			values := variants(t)[name]
			if monitoring, ok := values["monitoring"].(map[string]any); ok { // its kinds are unknown to the server
				monitoring["serviceMonitor"], monitoring["rules"] = false, false
			}
			objects, err := decode(decoder(t), mustRender(t, values))
			if err != nil {
				t.Fatal(err)
			}
			template := only[*appsv1.StatefulSet](t, objects).Spec.Template
			pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
			for _, claim := range only[*appsv1.StatefulSet](t, objects).Spec.VolumeClaimTemplates {
				source := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}
				pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim.Name,
					VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: source}})
			}
			pod.APIVersion, pod.Kind, pod.Name, pod.Spec.PriorityClassName = "v1", "Pod", "zrlmpid", ""
			server.createNamespace(t, name, level)
			for _, object := range append(objects, pod) {
				if err := server.create(t, name, object); err != nil {
					t.Error(err)
				}
			}
			if level == "privileged" {
				server.createNamespace(t, name+"-baseline", "baseline")
				if err := server.create(t, name+"-baseline", pod); err == nil ||
					!strings.Contains(err.Error(), "violates PodSecurity") {
					t.Errorf("the pod is admitted at level baseline: %v", err)
				}
			}
		})
	}
}

// apiServer is a running kube-apiserver.
type apiServer struct {
	url, token string
	client     *http.Client
}

// startAPIServer starts etcd and kube-apiserver, and waits until the latter is ready.
func startAPIServer(t *testing.T) *apiServer {
	t.Helper()
	folder, etcd, peers, port := t.TempDir(), freePort(t), freePort(t), freePort(t)
	start := func(name string, args ...string) {
		cmd := exec.Command(filepath.Join(*programs, name), args...)
		log := new(bytes.Buffer)
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if t.Failed() {
				t.Logf("%s:\n%s", name, log)
			}
		})
	}
	s := &apiServer{"https://127.0.0.1:" + port, rand.Text(), &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // its certificate is new, and it is on the loopback address
	}}}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	accounts, tokens := filepath.Join(folder, "accounts.pem"), filepath.Join(folder, "tokens.csv")
	for path, text := range map[string][]byte{
		accounts: pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		tokens:   []byte(s.token + ",test,1,system:masters\n"),
	} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	store := "http://127.0.0.1:" + etcd
	start("etcd", "--data-dir="+filepath.Join(folder, "etcd"), "--listen-client-urls="+store,
		"--advertise-client-urls="+store, "--listen-peer-urls=http://127.0.0.1:"+peers)
	start("kube-apiserver", "--etcd-servers="+store, "--cert-dir="+filepath.Join(folder, "certificates"),
		"--bind-address=127.0.0.1", "--secure-port="+port, "--service-cluster-ip-range=10.0.0.0/24",
		"--service-account-issuer=https://test", "--service-account-key-file="+accounts,
		"--service-account-signing-key-file="+accounts, "--token-auth-file="+tokens, "--authorization-mode=RBAC",
		"--disable-admission-plugins=ServiceAccount")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for tick := time.NewTicker(100 * time.Millisecond); ; {
		err := s.do(ctx, http.MethodGet, "/readyz", nil)
		if err == nil {
			return s
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("kube-apiserver is not ready: %v", err)
		}
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func (s *apiServer) do(ctx context.Context, method, path string, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, response.Status, text)
	}
	return err
}

func (s *apiServer) createNamespace(t *testing.T, name, level string) {
	t.Helper()
	text := fmt.Sprintf(`{"metadata": {"name": %q, "labels": {"pod-security.kubernetes.io/enforce": %q}}}`, name, level)
	if err := s.do(t.Context(), http.MethodPost, "/api/v1/namespaces", []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// create creates an object. Unknown fields are an error.
func (s *apiServer) create(t *testing.T, namespace string, object runtime.Object) error {
	t.Helper()
	kind := object.GetObjectKind().GroupVersionKind()
	resource := strings.ToLower(kind.Kind) + "s"
	if strings.HasSuffix(resource, "ys") {
		resource = strings.TrimSuffix(resource, "ys") + "ies"
	}
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	prefix := "/apis/" + kind.Group
	if kind.Group == "" {
		prefix = "/api"
	}
	return s.do(t.Context(), http.MethodPost,
		fmt.Sprintf("%s/%s/namespaces/%s/%s?fieldValidation=Strict", prefix, kind.Version, namespace, resource), text)
}
