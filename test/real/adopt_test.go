package real

import (
	"os"
	"testing"
	"time"

	"aether.internal/test/node"
)

// Envoy's command line, as it stood in somebody's manifest, is wrapped: its
// bootstrap, base-id, workers and admin are the supervisor's, and hot restarts
// work as with flags.
func TestAnAdoptedCommandLineHotRestarts(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.Adopted = true
	s.start("--", "--concurrency 2", "--service-node", "a node") // in one argument, as some manifests have it
	st := s.status()
	if st.BaseID != s.BaseID || st.ConfigPath != s.ConfigPath || st.EnvoyPath != s.EnvoyPath || st.Concurrency != 2 || st.AdminAddress != s.Bootstrap.Admin {
		t.Errorf("not what the command line says: %+v", st)
	}
	s.mixed(500 * time.Millisecond)
	s.write("v2") // watched, where -c says it is
	s.await("epoch 1 to serve", node.Serves(1))
	s.hup()
	s.await("epoch 2 to serve", node.Serves(2))
	s.unharmed()
	s.stop()
	s.nothingLeft()
}

// The same with the whole bootstrap in the command line.
func TestAnInlineBootstrapHotRestarts(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	bootstrap, err := os.ReadFile(s.ConfigPath)
	if err != nil {
		t.Fatal(err)
	}
	s.Adopted, s.Inline = true, string(bootstrap)
	s.start()
	s.mixed(500 * time.Millisecond)
	s.hup()
	s.await("epoch 1 to serve", node.Serves(1))
	s.unharmed()
	s.stop()
}
