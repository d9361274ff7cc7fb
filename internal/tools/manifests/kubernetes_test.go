package manifests

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const kubernetes = "../../../deploy/kubernetes"

// decoder returns a strict decoder for the kinds that the manifests use.
func decoder(t *testing.T) runtime.Decoder {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme,
		monitoringv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return kjson.NewSerializerWithOptions(kjson.DefaultMetaFactory, scheme, scheme,
		kjson.SerializerOptions{Yaml: true, Strict: true})
}

// decode decodes all objects in a stream of YAML documents.
func decode(d runtime.Decoder, text []byte) (objects []runtime.Object, err error) {
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := documents.Read()
		if err == io.EOF {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object, _, err := d.Decode(document, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%w in\n%s", err, document)
		}
		objects = append(objects, object)
	}
}

// build runs kustomize build, with access to files only.
func build(t *testing.T, folder string) []byte {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	text, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func overlays(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(kubernetes, "overlays", "*"))
	if err != nil || len(found) < 2 {
		t.Fatalf("overlays: %q, %v", found, err)
	}
	return found
}

// TestManifests decodes every manifest by itself. A patch is only a part of an object, but all its fields must be
// known.
func TestManifests(t *testing.T) {
	d, read := decoder(t), 0
	err := filepath.WalkDir(kubernetes, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var head metav1.TypeMeta
		if err := yaml.Unmarshal(text, &head); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		switch {
		case head.Kind == "Kustomization" || head.Kind == "Component":
			var k types.Kustomization
			if err := yaml.UnmarshalStrict(text, &k); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		case head.Kind == "": // TestConfigurations checks configurations of zrlmpid
			return nil
		default:
			if _, err := decode(d, text); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		read++
		return nil
	})
	if err != nil || read < 9 {
		t.Errorf("%d manifests were read: %v", read, err)
	}
}

// TestMistakes checks that decode detects mistakes.
func TestMistakes(t *testing.T) {
	d := decoder(t)
	good := build(t, filepath.Join(kubernetes, "overlays", "host-network"))
	if _, err := decode(d, good); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"serviceName", "readinessProbe", "httpGet", "seccompProfile", "maxUnavailable",
		"clusterIP", "scrapeNativeHistograms", "hostNetwork", "nodeSelector", "topologyKey", "matchLabels"} {
		bad := bytes.ReplaceAll(good, []byte(field+":"), []byte(field+"s:"))
		if bytes.Equal(bad, good) {
			t.Errorf("no manifest has %s", field)
			continue
		}
		if _, err := decode(d, bad); err == nil || !strings.Contains(err.Error(), field+"s") {
			t.Errorf("%ss is taken for a field: %v", field, err)
		}
	}
	for from, to := range map[string]string{"replicas: 2": "replicas: two", "apps/v1": "apps/v7",
		"kind: StatefulSet": "kind: StatefullSet", "containerPort: 9627": "containerPort: http"} {
		if _, err := decode(d, bytes.ReplaceAll(good, []byte(from), []byte(to))); err == nil {
			t.Errorf("%q is taken", to)
		}
	}
}

// TestOverlays builds every overlay and checks that its parts refer to each other correctly.
func TestOverlays(t *testing.T) {
	for _, folder := range overlays(t) {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			objects, err := decode(decoder(t), build(t, folder))
			if err != nil {
				t.Fatal(err)
			}
			set := only[*appsv1.StatefulSet](t, objects)
			service := only[*corev1.Service](t, objects)
			if set.Spec.ServiceName != service.Name || service.Spec.ClusterIP != corev1.ClusterIPNone {
				t.Errorf("the set's service is %q, the headless one %q", set.Spec.ServiceName, service.Name)
			}
			pod := labels.Set(set.Spec.Template.Labels)
			if !labels.SelectorFromSet(service.Spec.Selector).Matches(pod) || len(service.Spec.Selector) == 0 {
				t.Errorf("the service selects %v, and pods have %v", service.Spec.Selector, pod)
			}
			selects(t, "the set", set.Spec.Selector, pod)
			for _, o := range objects {
				switch o := o.(type) {
				case *policyv1.PodDisruptionBudget:
					selects(t, "the disruption budget", o.Spec.Selector, pod)
				case *networkingv1.NetworkPolicy:
					selects(t, "the network policy", &o.Spec.PodSelector, pod)
				case *monitoringv1.ServiceMonitor:
					selects(t, "the service monitor", &o.Spec.Selector, labels.Set(service.Labels))
					if port := o.Spec.Endpoints[0].Port; port != service.Spec.Ports[0].Name {
						t.Errorf("the service monitor scrapes port %q", port)
					}
				}
			}
			checkPod(t, &set.Spec.Template.Spec, service, objects)
		})
	}
}

// foreign lists the labels of unrelated pods in the same namespace.
var foreign = []labels.Set{{}, {"app.kubernetes.io/name": "postgresql"}, {"app": "zrlmpid"}}

// selects checks that a selector matches the pod but no foreign pod. An empty selector would match all pods.
func selects(t *testing.T, what string, selector *metav1.LabelSelector, pod labels.Set) {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || !s.Matches(pod) {
		t.Errorf("%s selects %v, which does not match %v: %v", what, selector, pod, err)
		return
	}
	for _, other := range foreign {
		if s.Matches(other) {
			t.Errorf("%s selects %v, which matches a pod of others, with labels %v", what, selector, other)
		}
	}
}

// checkPod checks that the ports, probes and volumes of a pod exist, and that the pod has no more privileges than it
// needs.
func checkPod(t *testing.T, pod *corev1.PodSpec, service *corev1.Service, objects []runtime.Object) {
	t.Helper()
	c := &pod.Containers[0]
	if c.Ports[0].Name != service.Spec.Ports[0].TargetPort.String() || c.Ports[0].ContainerPort != 9627 {
		t.Errorf("port %+v is not that of the service", c.Ports[0])
	}
	for path, probe := range map[string]*corev1.Probe{"/-/healthy": c.LivenessProbe, "/-/ready": c.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path ||
			probe.HTTPGet.Port.String() != c.Ports[0].Name {
			t.Errorf("the probe of %s is %+v", path, probe)
		}
	}
	s := c.SecurityContext
	if *pod.SecurityContext.RunAsUser == 0 || !*pod.SecurityContext.RunAsNonRoot || *s.AllowPrivilegeEscalation ||
		!*s.ReadOnlyRootFilesystem || len(s.Capabilities.Drop) != 1 || len(s.Capabilities.Add) != 0 {
		t.Errorf("the pod may do too much: %+v, %+v", pod.SecurityContext, s)
	}
	maps := configMaps(objects)
	for _, v := range pod.Volumes {
		if v.ConfigMap != nil && maps[v.ConfigMap.Name] == nil {
			t.Errorf("volume %s is of ConfigMap %s, which there is not", v.Name, v.ConfigMap.Name)
		}
	}
}

func configMaps(objects []runtime.Object) map[string]*corev1.ConfigMap {
	maps := make(map[string]*corev1.ConfigMap)
	for _, o := range objects {
		if m, ok := o.(*corev1.ConfigMap); ok {
			maps[m.Name] = m
		}
	}
	return maps
}

// only returns the one object that has the given type.
func only[T runtime.Object](t *testing.T, objects []runtime.Object) (one T) {
	t.Helper()
	n := 0
	for _, o := range objects {
		if o, ok := o.(T); ok {
			one = o
			n++
		}
	}
	if n != 1 {
		t.Fatalf("there are %d %T", n, one)
	}
	return one
}
