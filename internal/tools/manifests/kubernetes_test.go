package manifests

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

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

// TestMistakes checks that decode detects mistakes.
func TestMistakes(t *testing.T) {
	d := decoder(t)
	good := append(mustRender(t, variants(t)["host-network"]), mustRender(t, variants(t)["all"])...)
	if _, err := decode(d, good); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"serviceName", "readinessProbe", "httpGet", "seccompProfile", "maxUnavailable",
		"clusterIP", "scrapeNativeHistograms", "hostNetwork", "nodeSelector", "topologyKey", "matchLabels",
		"volumeClaimTemplates", "fsGroup"} {
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

// TestObjects checks for every variant that its objects refer to each other correctly.
func TestObjects(t *testing.T) {
	for name, values := range variants(t) {
		t.Run(name, func(t *testing.T) {
			objects, err := decode(decoder(t), mustRender(t, values))
			if err != nil {
				t.Fatal(err)
			}
			set := only[*appsv1.StatefulSet](t, objects)
			service := only[*corev1.Service](t, objects)
			if set.Spec.ServiceName != service.Name || service.Spec.ClusterIP != corev1.ClusterIPNone {
				t.Errorf("the set's service is %q, the headless one %q", set.Spec.ServiceName, service.Name)
			}
			pod := labels.Set(set.Spec.Template.Labels)
			selects(t, "the service", &metav1.LabelSelector{MatchLabels: service.Spec.Selector}, pod)
			selects(t, "the set", set.Spec.Selector, pod)
			for _, constraint := range set.Spec.Template.Spec.TopologySpreadConstraints {
				selects(t, "the topology spread constraint", constraint.LabelSelector, pod)
			}
			policies := 0
			for _, o := range objects {
				switch o := o.(type) {
				case *policyv1.PodDisruptionBudget:
					selects(t, "the disruption budget", o.Spec.Selector, pod)
				case *networkingv1.NetworkPolicy:
					selects(t, "the network policy", &o.Spec.PodSelector, pod)
					checkPolicy(t, &o.Spec)
					policies++
				case *monitoringv1.ServiceMonitor:
					selects(t, "the service monitor", &o.Spec.Selector, labels.Set(service.Labels))
					if port := o.Spec.Endpoints[0].Port; port != service.Spec.Ports[0].Name {
						t.Errorf("the service monitor scrapes port %q", port)
					}
				}
			}
			if onNodes := set.Spec.Template.Spec.HostNetwork; onNodes == (policies == 1) {
				t.Errorf("%d network policies, and host network: %v", policies, onNodes)
			}
			checkPod(t, &set.Spec, service, objects)
		})
	}
}

// foreign lists the labels of unrelated pods in the same namespace, such as the pods of another release.
var foreign = []labels.Set{{}, {"app.kubernetes.io/name": "postgresql"}, {"app": "zrlmpid"},
	{"app.kubernetes.io/name": "postgresql", "app.kubernetes.io/instance": release},
	{"app.kubernetes.io/name": "zrlmpid", "app.kubernetes.io/instance": "another"}}

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
			t.Errorf("%s selects %v, which matches a foreign pod with labels %v", what, selector, other)
		}
	}
}

// checkPolicy checks which sources the default network policy admits.
func checkPolicy(t *testing.T, spec *networkingv1.NetworkPolicySpec) {
	t.Helper()
	if len(spec.Egress) != 0 || len(spec.PolicyTypes) != 2 || len(spec.Ingress) != 1 {
		t.Fatalf("the policy does not deny all but one kind of traffic: %+v", spec)
	}
	rule := spec.Ingress[0]
	if len(rule.Ports) != 1 || rule.Ports[0].Port.String() != "http" {
		t.Errorf("the policy opens %v", rule.Ports)
	}
	for _, source := range []struct {
		namespace string // "" for the namespace of the policy
		admitted  bool
	}{{"", true}, {"monitoring", true}, {"another", false}, {"kube-system", false}} {
		admitted := slices.ContainsFunc(rule.From, func(peer networkingv1.NetworkPolicyPeer) bool {
			if peer.NamespaceSelector == nil {
				return source.namespace == "" && peer.IPBlock == nil
			}
			s, err := metav1.LabelSelectorAsSelector(peer.NamespaceSelector)
			return err == nil && s.Matches(labels.Set{"kubernetes.io/metadata.name": source.namespace})
		})
		if admitted != source.admitted || len(rule.From) == 0 {
			t.Errorf("pods of namespace %q are admitted: %v", source.namespace, admitted)
		}
	}
}

// checkPod checks that the ports, probes and volumes of a pod exist, and that a change of the configuration reaches the
// daemon without a restart.
func checkPod(t *testing.T, set *appsv1.StatefulSetSpec, service *corev1.Service, objects []runtime.Object) {
	t.Helper()
	pod := &set.Template.Spec
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
	maps, volumes := configMaps(objects), make(map[string]bool)
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
		if v.ConfigMap != nil && maps[v.ConfigMap.Name] == nil {
			t.Errorf("volume %s is of ConfigMap %s, which does not exist", v.Name, v.ConfigMap.Name)
		}
		if v.EmptyDir != nil && v.EmptyDir.SizeLimit.Cmp(resource.MustParse("64Mi")) < 0 {
			t.Errorf("volume %s has a limit of %v", v.Name, v.EmptyDir.SizeLimit)
		}
	}
	for _, claim := range set.VolumeClaimTemplates {
		volumes[claim.Name] = true
	}
	for _, m := range c.VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("there is no volume %s", m.Name)
		}
		if m.SubPath != "" {
			t.Errorf("the kubelet does not update %s, because of its subPath", m.MountPath)
		}
	}
	if !slices.Contains(c.Args, "--watch") {
		t.Errorf("the daemon does not watch its configuration: %q", c.Args)
	}
}

// TestPodSecurity checks the Pod Security level that each variant needs, and why it does not meet a stricter one.
func TestPodSecurity(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]map[api.Level]string{
		"standins":     {api.LevelBaseline: "", api.LevelRestricted: ""},
		"all":          {api.LevelBaseline: "", api.LevelRestricted: ""},
		"host-network": {api.LevelBaseline: "host namespaces", api.LevelRestricted: "host namespaces"},
		"xdp": {api.LevelBaseline: "non-default capabilities",
			api.LevelRestricted: "unrestricted capabilities, runAsNonRoot != true, runAsUser=0"},
	} {
		objects, err := decode(decoder(t), mustRender(t, variants(t)[name]))
		if err != nil {
			t.Fatal(err)
		}
		template := &only[*appsv1.StatefulSet](t, objects).Spec.Template
		for level, reasons := range want {
			results := evaluator.EvaluatePod(api.LevelVersion{Level: level, Version: api.LatestVersion()},
				&template.ObjectMeta, &template.Spec)
			if got := policy.AggregateCheckResults(results); strings.Join(got.ForbiddenReasons, ", ") != reasons {
				t.Errorf("%s, %s: %q, want %q", name, level, got.ForbiddenReasons, reasons)
			}
		}
		c := &template.Spec.Containers[0]
		if s := c.SecurityContext; !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation {
			t.Errorf("%s: the container may do too much: %+v", name, s)
		}
	}
}

// TestKustomize builds an overlay of each example, as a user writes it: with an image and other configurations.
func TestKustomize(t *testing.T) {
	for _, example := range []string{"standins", "host-network"} {
		base, err := filepath.Abs(filepath.Join(kubernetes, example))
		if err != nil {
			t.Fatal(err)
		}
		folder, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if base, err = filepath.Rel(folder, base); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"worker-c.yaml": "ranks: []\n",
			"kustomization.yaml": `
resources: [` + base + `]
images: [{name: zrlmpid, newName: registry.example/zrlmpid, newTag: "1"}]
configMapGenerator:
  - {name: zrlmpid, behavior: replace, files: [worker-c.yaml], options: {disableNameSuffixHash: true}}
`,
		} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
		if err != nil {
			t.Fatal(err)
		}
		text, err := resources.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		objects, err := decode(decoder(t), text)
		if err != nil {
			t.Fatal(err)
		}
		if config := only[*corev1.ConfigMap](t, objects); config.Name != release || len(config.Data) != 1 {
			t.Errorf("ConfigMap %s has %v", config.Name, config.Data)
		}
		image := only[*appsv1.StatefulSet](t, objects).Spec.Template.Spec.Containers[0].Image
		if image != "registry.example/zrlmpid:1" {
			t.Errorf("the image is %s", image)
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
