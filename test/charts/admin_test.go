package charts

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The stats listener asks for the admin where the supervisor, by the arguments
// that the user may add, has Envoy open it.
func TestStatsFollowTheAdmin(t *testing.T) {
	const (
		hot   = "proxy.hotRestart."
		on    = hot + "enabled=true"
		cross = on + "," + hot + "crossPod=true"
		extra = "," + hot + "extraArgs[0]="
		own   = "/var/run/aether-proxy/admin.sock"
		link  = "/run/aether/hotrestart/admin.sock"
	)
	for _, c := range []struct {
		set, at string
		flags   int // how often --admin-per-epoch is passed, in any form
	}{
		{"stats.port=9902", own, 0},
		{on, own, 0},
		{cross, link, 1},
		{cross + ",bootstrap.admin.address.pipe.path=/x", link, 1},
		{cross + extra + "--admin-per-epoch", link, 2},
		{cross + extra + "--admin-per-epoch=true", link, 2},
		{cross + extra + "--admin-per-epoch=false", own, 1},
		{cross + extra + "--relay=false", own, 0},
		{cross + ",env[0].name=AETHER_RELAY,env[0].value=f", own, 0},
		{cross + extra + "--state-dir=/elsewhere", "/elsewhere/admin.sock", 1},
		{on + extra + "--admin-per-epoch", "/var/run/aether-proxy/hotrestart/admin.sock", 2},
	} {
		t.Run(c.set, func(t *testing.T) {
			for _, h := range helms(t) {
				out, err := template(t, h, "aether-proxy", "--set="+c.set)
				if err != nil {
					t.Fatal(err)
				}
				objects, err := decode(out)
				if err != nil {
					t.Fatal(err)
				}
				config, args := bootstrapAndArguments(t, objects)
				_, cluster, _ := strings.Cut(config, "cluster_name: aether_admin")
				if want := "path: " + c.at + "\n"; !strings.Contains(cluster, want) {
					t.Errorf("helm %d: the stats listener's cluster has no %q:\n%s", h.Major, want, config)
				}
				args = slices.DeleteFunc(args, func(a string) bool { return !strings.HasPrefix(a, "--admin-per-epoch") })
				if len(args) != c.flags {
					t.Errorf("helm %d: passed are %q", h.Major, args)
				}
			}
		})
	}
}

// The API server takes a variable that is there twice, a server-side apply
// doesn't.
func TestPodNameIsThereOnce(t *testing.T) {
	h := helms(t)[0]
	for set, want := range map[string]int{
		"stats.port=9902":               0, // plain Envoy has no use for it
		"proxy.hotRestart.enabled=true": 1,
		"proxy.hotRestart.enabled=true,env[0].name=POD_NAME,env[0].value=mine": 1,
	} {
		out, err := template(t, h, "aether-proxy", "--set="+set)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out, "name: POD_NAME\n"); got != want {
			t.Errorf("%s: POD_NAME is there %d times", set, got)
		}
	}
}

func bootstrapAndArguments(t *testing.T, objects []runtime.Object) (config string, args []string) {
	t.Helper()
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.ConfigMap:
			config = o.Data["envoy.yaml"]
		case *appsv1.DaemonSet:
			args = o.Spec.Template.Spec.Containers[0].Args
		}
	}
	if config == "" || len(args) == 0 {
		t.Fatalf("no bootstrap or no arguments: %q, %q", config, args)
	}
	return config, args
}
