package containers

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	tc "github.com/testcontainers/testcontainers-go"
)

const (
	victimVariable  = "AETHER_CONTAINERS_VICTIM"
	sessionVariable = "TESTCONTAINERS_SESSION_ID"
	sessionLabel    = "org.testcontainers.sessionId"
)

// A test process that is killed with pods running leaves no container and no
// volume: the reaper has a connection to it, and removes them when that ends.
func TestAKilledTestLeavesNothing(t *testing.T) {
	if os.Getenv(victimVariable) != "" {
		t.Skip("this is the one that is killed")
	}
	engine.use(t)
	session := strings.ToLower(rand.Text())
	victim := exec.Command(os.Args[0], "-test.run=^TestVictim$", "-test.v") //nolint:gosec // ourselves
	victim.Env = append(os.Environ(), victimVariable+"=1", sessionVariable+"="+session, "RYUK_RECONNECTION_TIMEOUT=1s")
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan() && !strings.Contains(lines.Text(), victimServes); {
	}
	containers, volumes := left(t, session)
	_ = victim.Process.Kill()
	_ = victim.Wait() // killed
	if containers < 3 || volumes < 2 {
		t.Fatalf("only %d containers and %d volumes before the kill", containers, volumes)
	}
	killed := time.Now()
	n := node{T: t}
	n.until("the reaper to have removed everything, and itself", func() bool {
		c, v := left(t, session)
		return c+v == 0
	})
	t.Logf("%d containers and %d volumes are gone %v after the kill", containers, volumes, time.Since(killed).Round(100*time.Millisecond))
}

const victimServes = "the victim serves"

// TestVictim is what TestAKilledTestLeavesNothing kills; by itself it is nothing.
func TestVictim(t *testing.T) {
	if os.Getenv(victimVariable) == "" {
		t.Skip("only for TestAKilledTestLeavesNothing")
	}
	if tc.SessionID() != os.Getenv(sessionVariable) {
		t.Fatalf("session %s isn't the one we were given", tc.SessionID())
	}
	n := newNode(t)
	n.pod("a").serves(0)
	fmt.Println(victimServes)
	<-t.Context().Done() // never
}

// left counts what a session has in the engine, the reaper included.
func left(t *testing.T, session string) (containers, volumes int) {
	t.Helper()
	of := make(client.Filters).Add("label", sessionLabel+"="+session)
	c, err := engine.api.ContainerList(t.Context(), client.ContainerListOptions{All: true, Filters: of})
	if err != nil {
		t.Fatal(err)
	}
	v, err := engine.api.VolumeList(t.Context(), client.VolumeListOptions{Filters: of})
	if err != nil {
		t.Fatal(err)
	}
	return len(c.Items), len(v.Items)
}
