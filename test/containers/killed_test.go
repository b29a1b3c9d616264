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
	victimVariable = "AETHER_CONTAINERS_VICTIM" // the session of the one that is killed
	sessionLabel   = "org.testcontainers.sessionId"
)

// A test process that is killed with pods running leaves no container and no
// volume: the reaper has a connection to it, and removes them when that ends.
// The process is this test once more.
func TestAKilledTestLeavesNothing(t *testing.T) {
	if session := os.Getenv(victimVariable); session != "" {
		beKilled(t, session)
	}
	engine.use(t)
	session := strings.ToLower(rand.Text())
	victim := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v") //nolint:gosec // ourselves
	victim.Env = append(os.Environ(), victimVariable+"="+session, "TESTCONTAINERS_SESSION_ID="+session, "RYUK_RECONNECTION_TIMEOUT=1s")
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

// beKilled has a pod running until its process is killed.
func beKilled(t *testing.T, session string) {
	if tc.SessionID() != session {
		t.Fatalf("session %s isn't the one we were given", tc.SessionID())
	}
	newNode(t).pod("a").serves(0)
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
