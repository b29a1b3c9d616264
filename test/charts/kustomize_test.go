package charts

import (
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"aether.internal/test/helm"
)

// The kustomize components put the supervisor into a DaemonSet that knows
// nothing of it, and leave the rest alone.
func TestKustomizeComponents(t *testing.T) {
	for _, scenario := range []string{"in-place", "cross-pod", "surge"} {
		t.Run(scenario, func(t *testing.T) {
			out, err := helm.Kustomize(t.Context(), root, filepath.Join(root, "test", "charts", "testdata", "kustomize", scenario))
			if err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("kustomize", scenario+".yaml"), out)
			objects, err := decode(out)
			if err != nil {
				t.Fatal(err)
			}
			ds := objects[len(objects)-1].(*appsv1.DaemonSet)
			adopted(t, ds, scenario)
			ports := 0
			for _, c := range ds.Spec.Template.Spec.Containers {
				ports += len(c.Ports)
			}
			if surges := ds.Spec.UpdateStrategy.RollingUpdate != nil && ds.Spec.UpdateStrategy.RollingUpdate.MaxSurge.IntValue() > 0; surges != (scenario == "surge") || surges && ports > 0 {
				t.Errorf("surges: %v, ports: %d", surges, ports)
			}
		})
	}
}

func adopted(t *testing.T, ds *appsv1.DaemonSet, scenario string) {
	t.Helper()
	pod := ds.Spec.Template.Spec
	envoy := named(t, pod, "envoy")
	if got := strings.Join(append(envoy.Command, envoy.Args...), " "); got != "/opt/aether/supervisor proxy-supervisor -- envoy -c /config/envoy.yaml --service-node $(POD) --log-level warning" {
		t.Errorf("it runs %s", got)
	}
	if envoy.LivenessProbe != nil || envoy.Lifecycle != nil || envoy.ReadinessProbe.HTTPGet != nil || envoy.ReadinessProbe.InitialDelaySeconds != 0 {
		t.Error("of its own probes and hooks something is left")
	}
	env := map[string]string{}
	for _, e := range envoy.Env {
		env[e.Name] = e.Value
	}
	if _, kept := env["POD"]; !kept || env["AETHER_BASE_ID"] != "7" || (env["AETHER_SUCCESSOR_WAIT"] != "") == (scenario == "in-place") {
		t.Errorf("variables %v", env)
	}
	if *pod.TerminationGracePeriodSeconds != 60 || len(pod.Containers) != 2 {
		t.Errorf("grace period %d, %d containers", *pod.TerminationGracePeriodSeconds, len(pod.Containers))
	}
	named(t, corev1.PodSpec{Containers: pod.InitContainers}, "wait")
	for _, c := range containers(pod) {
		for _, m := range c.VolumeMounts {
			volume(t, pod, m.Name, scenario)
		}
	}
}

func named(t *testing.T, pod corev1.PodSpec, name string) corev1.Container {
	t.Helper()
	for _, c := range pod.Containers {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no container %s", name)
	return corev1.Container{}
}

// volume wants one of that name; what pods share is on the host, below the
// DaemonSet's own name.
func volume(t *testing.T, pod corev1.PodSpec, name, scenario string) {
	t.Helper()
	for _, v := range pod.Volumes {
		if v.Name != name {
			continue
		}
		shared := scenario != "in-place" && (name == "aether-shm" || name == "aether-state")
		if shared != (v.HostPath != nil) || shared && v.HostPath.Path != "/run/aether/front/"+strings.TrimPrefix(name, "aether-") {
			t.Errorf("volume %s: %s", name, asText(v))
		}
		return
	}
	t.Errorf("there is no volume %s", name)
}
