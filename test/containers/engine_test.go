package containers

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	tc "github.com/testcontainers/testcontainers-go"
)

const (
	agentImage  = "aether/agent:dev"
	insideImage = "aether/inside:dev"
	installed   = "/opt/aether"
	nonroot     = 65532
)

// newVolume is labelled as the library's containers are: the reaper removes it
// if this process can't. Its name is short because socket paths lie in it.
func (e *theEngine) newVolume(ctx context.Context, options ...string) (string, error) {
	o := client.VolumeCreateOptions{Name: "ae" + rand.Text()[:8], Labels: tc.GenericLabels()}
	if len(options) > 0 { // of a tmpfs
		o.DriverOpts = map[string]string{"type": "tmpfs", "device": "tmpfs", "o": options[0]}
	}
	v, err := e.api.VolumeCreate(ctx, o)
	return v.Volume.Name, err
}

// removeVolume has a while: the engine lets go of a container's mounts late.
func (e *theEngine) removeVolume(name string) error {
	_, err := e.api.VolumeRemove(context.Background(), name, client.VolumeRemoveOptions{Force: true})
	return err
}

// mountpoint is where this machine's root finds a volume.
func (e *theEngine) mountpoint(ctx context.Context, volume string) (string, error) {
	v, err := e.api.VolumeInspect(ctx, volume, client.VolumeInspectOptions{})
	return v.Volume.Mountpoint, err
}

// exitCode waits for a container's end.
func (e *theEngine) exitCode(ctx context.Context, c tc.Container) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	wait := e.api.ContainerWait(ctx, c.GetContainerID(), client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	select {
	case result := <-wait.Result:
		return int(result.StatusCode), nil
	case err := <-wait.Error:
		return -1, fmt.Errorf("waiting for the container's end: %w", err)
	}
}

// signal sends one to a container's first process.
func (e *theEngine) signal(ctx context.Context, c tc.Container, name string) error {
	_, err := e.api.ContainerKill(ctx, c.GetContainerID(), client.ContainerKillOptions{Signal: name})
	return err
}

// confined is every container but where a test says otherwise: the image's own
// user, a read-only root, no capability, and no network of its own.
func confined() tc.ContainerCustomizer {
	return tc.WithHostConfigModifier(func(h *container.HostConfig) {
		h.ReadonlyRootfs, h.CapDrop, h.SecurityOpt = true, []string{"ALL"}, []string{"no-new-privileges"}
		h.NetworkMode = "none"
	})
}

// binds mounts volumes and directories: "FROM:TO[:ro]".
func binds(mounts ...string) tc.ContainerCustomizer {
	return tc.WithHostConfigModifier(func(h *container.HostConfig) { h.Binds = append(h.Binds, mounts...) })
}

// patience bounds every wait: generous, because order and outcome are judged
// here and never time.
const patience = 60 * time.Second
