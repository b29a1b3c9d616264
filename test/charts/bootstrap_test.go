package charts

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"aether.internal/tools/envoy/fetch"
)

// A real Envoy takes the bootstrap that a chart makes.
func TestEnvoyTakesBootstraps(t *testing.T) {
	envoy, err := fetch.Path(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, s := range scenarios(t) {
		objects, err := decode(render(t, s))
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			config, ok := object.(*corev1.ConfigMap)
			if !ok || config.Data["envoy.yaml"] == "" {
				continue
			}
			seen++
			file := filepath.Join(t.TempDir(), "envoy.yaml")
			if err := os.WriteFile(file, []byte(config.Data["envoy.yaml"]), 0o644); err != nil {
				t.Fatal(err)
			}
			args := []string{"--mode", "validate", "-c", file, "--service-node", "n", "--service-cluster", "c", "-l", "error"}
			if out, err := exec.CommandContext(t.Context(), envoy, args...).CombinedOutput(); err != nil {
				t.Errorf("%s/%s: %v\n%s", s.chart, s.name, err, out)
			}
		}
	}
	if seen < 3 {
		t.Errorf("only %d bootstraps found", seen)
	}
}
