package charts

import (
	"strings"
	"testing"
)

// What can't work is refused before anything is installed, in a sentence.
func TestRefusals(t *testing.T) {
	const hot = "proxy.hotRestart."
	const on = hot + "enabled=true"
	const cross = on + "," + hot + "crossPod=true"
	const surge = cross + "," + hot + "surge=true"
	both := helms(t)
	for _, c := range []struct{ chart, set, want string }{
		{"aether-proxy", hot + "crossPod=true", "crossPod needs proxy.hotRestart.enabled"},
		{"aether-proxy", hot + "surge=true", "surge needs proxy.hotRestart.crossPod"},
		{"aether-proxy", cross + ",hostNetwork=false", "crossPod needs hostNetwork"},
		{"aether-proxy", surge + ",ports[0].containerPort=80", "ports can't be declared with proxy.hotRestart.surge"},
		{"aether-proxy", surge + ",ports[0].containerPort=80,ports[0].hostPort=80", "the new pod would stay Pending"},
		{"aether-proxy", hot + "binary.volume.hostPath.path=/opt", "binary.volume needs proxy.hotRestart.enabled"},
		{"aether-proxy", "existingConfigMap=x,bootstrap.node.id=y", "bootstrap and existingConfigMap are both set"},
		{"aether-proxy", on + ",terminationGracePeriodSeconds=24", "an Envoy can't be drained in less than 25 seconds"},
		{"aether-proxy", on + "," + hot + "drainTimeSeconds=40", "has to be longer than its drain time"},
		{"aether-proxy", on + "," + hot + "parentShutdownTimeSeconds=43", "terminationGracePeriodSeconds (60 s) is shorter than parentShutdownTimeSeconds + drainTimeSeconds/2 + 5 s (43 + 25/2 + 5)"},
		{"aether-proxy", cross + "," + hot + "successorWaitSeconds=16", "is shorter than successorWaitSeconds + parentShutdownTimeSeconds + 5 s (16 + 40 + 5)"},
		{"aether-proxy", on + ",terminationGracePeriodSeconds=45," + hot + "parentShutdownTimeSeconds=40", "terminationGracePeriodSeconds (45 s) is shorter"},
		{"atenet-router", "drain.windowSeconds=50", "drain.delaySeconds (13), drain.windowSeconds (50), drain.timeoutSeconds (1) and 5 s for the marker and Envoy's own end are 69 s together"},
		{"atenet-router", "config.listeners=null", "config has no listeners"},
		{"atenet-router", "service.ports=null", "a Service needs a port"},
		// And by the schema.
		{"atenet-router", "drain.window=5", "additional properties 'window' not allowed"},
		{"atenet-router", "terminationGracePeriodSeconds=4", "minimum"},
		{"aether-proxy", "tolerations=all", "got string, want array"},
		{"aether-proxy", "proxy.hotRestart.enable=true", "additional properties 'enable' not allowed"},
		{"aether-proxy", hot + "baseId=214748365", "maximum"},
		{"aether-proxy", "image.digest=sha256:12", "does not match pattern"},
		{"aether-proxy", "runAsUser=0", "minimum"},
	} {
		t.Run(c.chart+" "+c.set, func(t *testing.T) {
			for _, h := range both {
				_, err := template(t, h, c.chart, "--set="+c.set)
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("helm %d: %v\nwant %q", h.Major, err, c.want)
				}
			}
		})
	}
}

func TestASidecarNeedsItsKubernetes(t *testing.T) {
	for _, h := range helms(t) {
		_, err := h.Run(t.Context(), nil, "template", "edge", chartDir("atenet-router"), "--set=nativeSidecar=true", "--kube-version=1.28.9")
		if err == nil || !strings.Contains(err.Error(), "nativeSidecar needs Kubernetes 1.29, and this is v1.28.9") {
			t.Error(err)
		}
	}
}

// The shortest grace period that is taken has times that fit into it.
func TestEveryGracePeriodFits(t *testing.T) {
	h := helms(t)[0]
	for _, seconds := range []string{"25", "26", "30", "31", "45", "60", "61", "90", "600", "86400"} {
		if _, err := template(t, h, "aether-proxy", "--set=proxy.hotRestart.enabled=true,proxy.hotRestart.crossPod=true,terminationGracePeriodSeconds="+seconds); err != nil {
			t.Errorf("%s s: %v", seconds, err)
		}
	}
}
