package images

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	docker "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"aether.internal/tools/runfile"
)

const (
	nonroot = 65532
	// ours is a label of everything a test makes, for whoever has to clean up
	// after a test that was killed: docker rm -fv $(docker ps -aqf label=aether.test)
	ours = "aether.test"
)

// engine is a Docker engine: the one of $DOCKER_HOST, or at the usual socket.
type engine struct {
	*testing.T
	api *client.Client
}

func newEngine(t *testing.T) engine {
	t.Helper()
	if runfile.Path("AGENT_IMAGE") == "" {
		t.Skip("the images are built by Bazel: bazel test //test/images:images_test")
	}
	api, err := client.New(client.FromEnv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { api.Close() })
	if _, err := api.Ping(t.Context(), client.PingOptions{}); err != nil {
		t.Fatalf("no Docker engine answers (tools/test starts one; --config=nodocker leaves these tests out): %v", err)
	}
	return engine{t, api}
}

func (e engine) with(t *testing.T) engine { return engine{t, e.api} }

// load gives the engine an image, as docker load does.
func (e engine) load(variable string) {
	e.Helper()
	f, err := os.Open(runfile.Path(variable))
	if err != nil {
		e.Fatal(err)
	}
	defer f.Close()
	result, err := e.api.ImageLoad(e.Context(), f)
	if err != nil {
		e.Fatal(err)
	}
	defer result.Close()
	if _, err := io.Copy(io.Discard, result); err != nil {
		e.Fatal(err)
	}
}

// volume is a new one, to be mounted at a path.
func (e engine) volume(at string) []mount.Mount {
	e.Helper()
	v, err := e.api.VolumeCreate(e.Context(), client.VolumeCreateOptions{Labels: map[string]string{ours: ""}})
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() {
		if _, err := e.api.VolumeRemove(context.Background(), v.Volume.Name, client.VolumeRemoveOptions{}); err != nil {
			e.Error(err)
		}
	})
	return []mount.Mount{{Type: mount.TypeVolume, Source: v.Volume.Name, Target: at}}
}

// container is what runs: always with the image's own user, a read-only root
// and no capability.
type container struct {
	image, entrypoint string
	args              []string
	mounts            []mount.Mount
	tmpfs             map[string]string // path to options
	hostNetwork       bool
}

// running is a container that was started; the test's end removes it.
type running struct {
	engine
	id string
}

func (e engine) start(c container) running {
	e.Helper()
	r, err := e.create(c)
	if err == nil {
		_, err = e.api.ContainerStart(e.Context(), r.id, client.ContainerStartOptions{})
	}
	if err != nil {
		e.Fatal(err)
	}
	return r
}

func (e engine) create(c container) (running, error) {
	config := &docker.Config{Image: c.image, Cmd: c.args, Labels: map[string]string{ours: ""}}
	if c.entrypoint != "" {
		config.Entrypoint = []string{c.entrypoint}
	}
	host := &docker.HostConfig{
		Mounts: c.mounts, Tmpfs: c.tmpfs, ReadonlyRootfs: true, CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges"}, NetworkMode: "none",
	}
	if c.hostNetwork {
		host.NetworkMode = "host"
	}
	made, err := e.api.ContainerCreate(e.Context(), client.ContainerCreateOptions{Config: config, HostConfig: host})
	if err != nil {
		return running{}, err
	}
	r := running{e, made.ID}
	e.Cleanup(func() {
		if e.Failed() {
			e.Logf("%s said:\n%s", c.image, r.output())
		}
		if _, err := e.api.ContainerRemove(context.Background(), r.id, client.ContainerRemoveOptions{Force: true}); err != nil {
			e.Error(err)
		}
	})
	return r, nil
}

// run runs a container to its end, or says why it can't be started.
func (e engine) run(c container) (code int, output string) {
	e.Helper()
	r, err := e.create(c)
	if err != nil {
		e.Fatal(err)
	}
	if _, err := e.api.ContainerStart(e.Context(), r.id, client.ContainerStartOptions{}); err != nil {
		return -1, err.Error()
	}
	return r.wait(), r.output()
}

func (e engine) succeeds(c container) (output string) {
	e.Helper()
	code, output := e.run(c)
	if code != 0 {
		e.Fatalf("%s %q: exit code %d\n%s", c.image, c.args, code, output)
	}
	return output
}

func (r running) wait() int {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
	defer cancel()
	wait := r.api.ContainerWait(ctx, r.id, client.ContainerWaitOptions{Condition: docker.WaitConditionNotRunning})
	select {
	case result := <-wait.Result:
		return int(result.StatusCode)
	case err := <-wait.Error:
		r.Fatalf("waiting for the container's end: %v", err)
	}
	return -1
}

func (r running) kill(signal string) {
	r.Helper()
	if _, err := r.api.ContainerKill(r.Context(), r.id, client.ContainerKillOptions{Signal: signal}); err != nil {
		r.Fatal(err)
	}
}

// output is what it has said so far.
func (r running) output() string {
	logs, err := r.api.ContainerLogs(context.Background(), r.id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true})
	if err != nil {
		return fmt.Sprint(err)
	}
	defer logs.Close()
	var out bytes.Buffer
	if _, err := stdcopy.StdCopy(&out, &out, logs); err != nil {
		return fmt.Sprint(err)
	}
	return out.String()
}
