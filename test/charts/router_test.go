package charts

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aether.internal/tools/runfile"
)

// routerProgram is the built atenet-router.
func routerProgram(t *testing.T) string {
	t.Helper()
	if path := runfile.Path("ATENET_ROUTER"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "atenet-router")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-tags=grpcnotrace", "-o", path, "./agent/cmd/atenet-router")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// Envoy's bootstrap in the chart is the one that the router prints.
func TestTheChartHasTheRoutersBootstrap(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), routerProgram(t), "bootstrap").Output()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(chartDir("atenet-router"), "files", "bootstrap.yaml")
	if got := readFile(t, path); got != string(out) {
		t.Errorf("%s isn't what `atenet-router bootstrap` prints; first difference:\n%s", path, firstDifference(string(out), got))
	}
}

// The chart refuses just the times that the router would refuse in each pod.
func TestTheChartRefusesWhatTheRouterRefuses(t *testing.T) {
	router, h := routerProgram(t), helms(t)[0]
	refused := 0
	for _, c := range []struct{ grace, delay, window, timeout int }{
		{5, -1, -1, -1}, {7, -1, -1, -1}, {30, -1, -1, -1}, {60, 13, 15, 27}, {60, 13, 15, 28}, {60, 53, -1, -1}, {60, 54, -1, -1},
		{60, -1, 42, -1}, {60, -1, 41, -1}, {60, 0, 0, 55}, {60, 0, 0, 56}, {24, 8, 8, 6}, {24, 8, 8, 7}, {600, 595, 0, 0}, {600, 596, 0, 0},
	} {
		flags := []string{fmt.Sprintf("--grace-period=%ds", c.grace), "--config=/missing"}
		set := []string{fmt.Sprintf("--set=terminationGracePeriodSeconds=%d", c.grace)}
		for _, part := range []struct {
			flag, key string
			seconds   int
		}{{"drain-delay", "delaySeconds", c.delay}, {"envoy-drain-window", "windowSeconds", c.window}, {"drain-timeout", "timeoutSeconds", c.timeout}} {
			if part.seconds >= 0 {
				flags = append(flags, fmt.Sprintf("--%s=%ds", part.flag, part.seconds))
				set = append(set, fmt.Sprintf("--set=drain.%s=%d", part.key, part.seconds))
			}
		}
		out, chartErr := template(t, h, "atenet-router", set...)
		routerRefuses := exitCode(t, router, flags) == 2
		if (chartErr != nil) != routerRefuses {
			t.Errorf("%+v: the router refuses: %v; the chart: %v", c, routerRefuses, chartErr)
		}
		if routerRefuses {
			refused++
			if chartErr != nil && !strings.Contains(chartErr.Error(), "more than terminationGracePeriodSeconds") {
				t.Errorf("%+v: %v", c, chartErr)
			}
			continue
		}
		// What the chart gives is what was asked.
		for _, flag := range slices.DeleteFunc(flags, func(f string) bool { return f == "--config=/missing" }) {
			if !strings.Contains(out, flag) {
				t.Errorf("%+v: %s is not among the router's arguments", c, flag)
			}
		}
	}
	if refused < 4 {
		t.Errorf("only %d of these are refused", refused)
	}
}

// exitCode of a router that has no configuration: 2 if its flags are wrong, 1
// otherwise.
func exitCode(t *testing.T, router string, flags []string) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), router, flags...)
	var out bytes.Buffer
	cmd.Stderr = &out
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 && exit.ExitCode() != 2 {
		t.Fatalf("%q: %v\n%s", flags, err, out.String())
	}
	return exit.ExitCode()
}
