package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// api asks the API server directly: a poll costs a millisecond instead of the
// half second of CPU that starting kubectl does.
type api struct {
	server string
	client *http.Client
}

func newAPI(state string) (*api, error) {
	pki := filepath.Join(state, "pki")
	pair, err := tls.LoadX509KeyPair(filepath.Join(pki, "admin.crt"), filepath.Join(pki, "admin.key"))
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(filepath.Join(pki, "ca.crt"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("no certificate in ca.crt")
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots}
	return &api{
		server: "https://127.0.0.1:26443",
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: config}},
	}, nil
}

func (a *api) request(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.server+path, content)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	return resp, nil
}

// call makes one request within ten seconds.
func (a *api) call(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	resp, err := a.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if into == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// ---- what we read of Kubernetes' objects -------------------------------------

type metadata struct {
	Name              string     `json:"name"`
	Namespace         string     `json:"namespace"`
	UID               string     `json:"uid"`
	Generation        int64      `json:"generation"`
	CreationTimestamp time.Time  `json:"creationTimestamp"`
	DeletionTimestamp *time.Time `json:"deletionTimestamp"`
}

type pod struct {
	Metadata metadata `json:"metadata"`
	Status   struct {
		Phase                 string      `json:"phase"`
		PodIP                 string      `json:"podIP"`
		Conditions            []condition `json:"conditions"`
		ContainerStatuses     []container `json:"containerStatuses"`
		InitContainerStatuses []container `json:"initContainerStatuses"`
	} `json:"status"`
}

type condition struct {
	Type, Status string
}

type container struct {
	Name             string `json:"name"`
	Ready            bool   `json:"ready"`
	RestartCount     int    `json:"restartCount"`
	ContainerID      string `json:"containerID"`
	State, LastState struct {
		Waiting    *struct{ Reason, Message string }
		Terminated *struct {
			ExitCode int
			Reason   string
		}
	}
}

func (p pod) ready() bool {
	return slices.Contains(p.Status.Conditions, condition{"Ready", "True"})
}

func (p pod) deleted() bool { return p.Metadata.DeletionTimestamp != nil }

func (p pod) restarts() int {
	n := 0
	for _, c := range slices.Concat(p.Status.ContainerStatuses, p.Status.InitContainerStatuses) {
		n += c.RestartCount
	}
	return n
}

// exitCode of the pod's container, -1 while it runs.
func (p pod) exitCode() int {
	for _, c := range p.Status.ContainerStatuses {
		if end := c.State.Terminated; end != nil {
			return end.ExitCode
		}
	}
	return -1
}

type daemonSet struct {
	Metadata metadata `json:"metadata"`
	Status   struct {
		ObservedGeneration     int64 `json:"observedGeneration"`
		DesiredNumberScheduled int   `json:"desiredNumberScheduled"`
		UpdatedNumberScheduled int   `json:"updatedNumberScheduled"`
		NumberAvailable        int   `json:"numberAvailable"`
	} `json:"status"`
}

func (d daemonSet) rolled() bool {
	s := d.Status
	return s.ObservedGeneration >= d.Metadata.Generation && s.DesiredNumberScheduled == 1 &&
		s.UpdatedNumberScheduled == 1 && s.NumberAvailable == 1
}

// ---- everything that happens to a namespace's pods ----------------------------

// history sees each state of each pod, the last one of a deleted pod included.
type history struct {
	mu     sync.Mutex
	latest map[string]pod // by UID
	gone   map[string]bool
	turns  []turn
}

// turn is a pod that became ready, or ceased to be.
type turn struct {
	at      time.Time
	pod     string
	ready   bool
	deleted bool // it was being deleted by then
}

// watch follows a namespace until ctx ends, through the ends of the API server.
func (a *api) watch(ctx context.Context, namespace string) *history {
	h := &history{latest: map[string]pod{}, gone: map[string]bool{}}
	go func() { // ends with ctx
		for ctx.Err() == nil {
			a.follow(ctx, namespace, h)
			select {
			case <-time.After(200 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}()
	return h
}

// follow returns when the server ends the stream. It begins with a list: what was
// deleted while there was no server is not in it.
func (a *api) follow(ctx context.Context, namespace string, h *history) {
	path := "/api/v1/namespaces/" + namespace + "/pods"
	var list struct {
		Metadata struct{ ResourceVersion string }
		Items    []pod
	}
	if a.call(ctx, http.MethodGet, path, nil, &list) != nil {
		return
	}
	h.only(list.Items)
	resp, err := a.request(ctx, http.MethodGet, path+"?watch=1&resourceVersion="+list.Metadata.ResourceVersion, nil)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	for events := json.NewDecoder(resp.Body); ; {
		var event struct {
			Type   string
			Object pod
		}
		if events.Decode(&event) != nil || event.Object.Metadata.UID == "" {
			return
		}
		h.see(event.Object, event.Type == "DELETED")
	}
}

// only these pods are there.
func (h *history) only(pods []pod) {
	there := map[string]bool{}
	for _, p := range pods {
		h.see(p, false)
		there[p.Metadata.UID] = true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range h.latest {
		h.gone[id] = !there[id]
	}
}

func (h *history) see(p pod, gone bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := p.Metadata.UID
	if before := h.latest[id]; before.ready() != p.ready() {
		h.turns = append(h.turns, turn{time.Now(), p.Metadata.Name, p.ready(), p.deleted()})
	}
	h.latest[id] = p
	if gone {
		h.gone[id] = true
	}
}

// pods are those that are there, the oldest first.
func (h *history) pods() []pod {
	h.mu.Lock()
	defer h.mu.Unlock()
	var there []pod
	for id, p := range h.latest {
		if !h.gone[id] {
			there = append(there, p)
		}
	}
	slices.SortFunc(there, func(a, b pod) int { return a.Metadata.CreationTimestamp.Compare(b.Metadata.CreationTimestamp) })
	return there
}

// last is the last state of a pod, gone or not.
func (h *history) last(uid string) (pod, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.latest[uid], h.gone[uid]
}

// restarts of all containers of all pods that there ever were.
func (h *history) restarts() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, p := range h.latest {
		n += p.restarts()
	}
	return n
}

func (h *history) turned() []turn {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.turns)
}
