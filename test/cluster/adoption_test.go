package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"aether.internal/test/helm"
)

// A DaemonSet that knows nothing of us, as a vendor writes it: Envoy's command line
// in args, a probe on its admin, and a port that it declares.
const foreign = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: %[1]s}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      hostNetwork: true
      containers:
        - name: envoy
          image: aether/envoy:1.40.0
          command: [/usr/local/bin/envoy]
          args: [-c, /config/envoy.yaml, --log-level, warning]
          ports: [{name: http, containerPort: %[2]d}]
          readinessProbe: {httpGet: {host: 127.0.0.1, port: %[3]d, path: /ready}, periodSeconds: 2}
          volumeMounts: [{name: config, mountPath: /config}]
      volumes: [{name: config, configMap: {name: %[1]s}}]
`

// Another's DaemonSet, into which kustomize puts the supervisor (docs/kubernetes.md,
// "Adoption"). Its times are the components' own: a grace period of 60 s.
func TestAdoption(t *testing.T) {
	t.Parallel()
	r := prepareRelease(t, "adoption")
	r.name, r.run = namespaces+"adopted", "aether-run"
	r.boot.Admin = "127.0.0.1:" + r.set["stats.port"]
	r.kustomized()
	r.rolled()
	r.until("an answer", func() bool { return r.tag() == "v1" })
	r.play(adoptionScenarios...)
}

var adoptionScenarios = []scenario{
	{name: "adoption by kustomize of another's DaemonSet: delete first", harm: between, play: adopted},
	{name: "adoption: its first surge roll", play: adoptedSurges},
}

func adopted(c *scene) {
	plain := c.only()
	c.rolls++
	c.kustomized("supervisor", "cross-pod")
	c.gone(plain)
	c.serving(c.rolled(), 0)
}

func adoptedSurges(c *scene) {
	old := c.only()
	c.kustomized("supervisor", "cross-pod", "surge")
	c.rolled()
	c.restart()
	c.takenOver(old, 1)
}

// kustomized applies the foreign DaemonSet with these components.
func (r *release) kustomized(components ...string) {
	r.Helper()
	data, err := yaml.Marshal(r.bootstrap("v1"))
	r.must(err)
	var port, admin int
	fmt.Sscan(strings.TrimPrefix(r.boot.Target().HTTP, "127.0.0.1:"), &port)
	fmt.Sscan(r.set["stats.port"], &admin)
	var list strings.Builder
	for _, name := range components {
		path, err := filepath.Rel(r.dir, filepath.Join(repository, "charts/kustomize", name))
		r.must(err)
		list.WriteString("  - " + path + "\n")
	}
	for name, text := range map[string]string{
		"envoy.yaml":     string(data),
		"daemonset.yaml": fmt.Sprintf(foreign, r.name, port, admin),
		"kustomization.yaml": "resources: [daemonset.yaml]\n" +
			"configMapGenerator: [{name: " + r.name + ", files: [envoy.yaml], options: {disableNameSuffixHash: true}}]\n" +
			"components:\n" + list.String(),
	} {
		r.must(os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o644))
	}
	rendered, err := helm.Kustomize(r.ctx, repository, r.dir)
	r.must(err)
	r.must(os.WriteFile(filepath.Join(r.dir, "rendered"), []byte(rendered), 0o644))
	r.kube("apply", "-n", r.namespace, "-f", filepath.Join(r.dir, "rendered"))
}
