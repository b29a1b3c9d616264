package charts

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// rules hold for every pod of every scenario.
var rules = []struct {
	name  string
	holds func(object runtime.Object, pod corev1.PodSpec) bool
}{
	{"no hook and no probe needs a shell: the images have none", func(_ runtime.Object, pod corev1.PodSpec) bool {
		return !slices.ContainsFunc(commands(pod), func(command []string) bool {
			return slices.Contains([]string{"sh", "bash", "/bin/sh", "/bin/bash"}, command[0])
		})
	}},
	{"nothing asks localhost, which may be an IPv6 address that nobody listens on", func(_ runtime.Object, pod corev1.PodSpec) bool {
		return !strings.Contains(asText(pod), "localhost")
	}},
	{"on the node's network an httpGet names its host, or it would ask the node's address", func(_ runtime.Object, pod corev1.PodSpec) bool {
		return !pod.HostNetwork || !slices.ContainsFunc(gets(pod), func(g *corev1.HTTPGetAction) bool { return g.Host == "" })
	}},
	{"a DaemonSet that surges declares no ports, or the new pod would stay Pending", func(object runtime.Object, pod corev1.PodSpec) bool {
		ds, ok := object.(*appsv1.DaemonSet)
		surges := ok && ds.Spec.UpdateStrategy.RollingUpdate.MaxSurge.IntValue() > 0
		return !surges || !slices.ContainsFunc(pod.Containers, func(c corev1.Container) bool { return len(c.Ports) > 0 })
	}},
	{"no container may gain privileges or write to its own root", func(_ runtime.Object, pod corev1.PodSpec) bool {
		return !slices.ContainsFunc(containers(pod), func(c corev1.Container) bool {
			s := c.SecurityContext
			return s == nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"})
		})
	}},
	{"root is nobody but an init container with CHOWN", func(_ runtime.Object, pod corev1.PodSpec) bool {
		if !*pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.RunAsUser == 0 {
			return false
		}
		return !slices.ContainsFunc(containers(pod), func(c corev1.Container) bool {
			root := c.SecurityContext.RunAsUser != nil && *c.SecurityContext.RunAsUser == 0
			return root && c.Name != "directories" || !slices.Equal(c.SecurityContext.Capabilities.Add, added(root))
		})
	}},
	{"system calls are filtered", func(_ runtime.Object, pod corev1.PodSpec) bool {
		return pod.SecurityContext.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault
	}},
	{"no token of the API server is mounted", func(_ runtime.Object, pod corev1.PodSpec) bool {
		return !*pod.AutomountServiceAccountToken
	}},
	{"no file is mounted by itself: such a mount never changes", func(_ runtime.Object, pod corev1.PodSpec) bool {
		return !slices.ContainsFunc(containers(pod), func(c corev1.Container) bool {
			return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.SubPath != "" })
		})
	}},
}

func TestRules(t *testing.T) {
	pods := 0
	for _, s := range scenarios(t) {
		objects, err := decode(render(t, s))
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			template := podTemplate(object)
			if template == nil {
				continue
			}
			pods++
			for _, r := range rules {
				if !r.holds(object, template.Spec) {
					t.Errorf("%s/%s, %s: broken: %s", s.chart, s.name, kindOf(object).Kind, r.name)
				}
			}
		}
	}
	if pods < len(charts)*3 {
		t.Errorf("only %d pods found", pods)
	}
}

func added(root bool) []corev1.Capability {
	if root {
		return []corev1.Capability{"CHOWN"}
	}
	return nil
}

func containers(pod corev1.PodSpec) []corev1.Container {
	return slices.Concat(pod.InitContainers, pod.Containers)
}

// handlers are those of probes and hooks.
func handlers(pod corev1.PodSpec) (execs []*corev1.ExecAction, gets []*corev1.HTTPGetAction) {
	add := func(e *corev1.ExecAction, g *corev1.HTTPGetAction) {
		if e != nil {
			execs = append(execs, e)
		}
		if g != nil {
			gets = append(gets, g)
		}
	}
	for _, c := range containers(pod) {
		for _, p := range []*corev1.Probe{c.ReadinessProbe, c.LivenessProbe, c.StartupProbe} {
			if p != nil {
				add(p.Exec, p.HTTPGet)
			}
		}
		if c.Lifecycle == nil {
			continue
		}
		for _, h := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if h != nil {
				add(h.Exec, h.HTTPGet)
			}
		}
	}
	return execs, gets
}

func gets(pod corev1.PodSpec) []*corev1.HTTPGetAction {
	_, all := handlers(pod)
	return all
}

// commands are all that is executed.
func commands(pod corev1.PodSpec) [][]string {
	var all [][]string
	execs, _ := handlers(pod)
	for _, e := range execs {
		all = append(all, e.Command)
	}
	for _, c := range containers(pod) {
		if len(c.Command) > 0 {
			all = append(all, c.Command)
		}
	}
	return all
}
