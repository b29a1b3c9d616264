package upstream

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"aether.internal/test/load/internal/wire"
)

// maxStream bounds what a client may ask for.
const maxStream = 24 * time.Hour

func routes(rpc http.Handler, epoch string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(wire.HelloPath, hello)
	mux.HandleFunc(wire.StreamPath, stream)
	mux.HandleFunc(wire.EchoPath, echo)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if epoch != "" {
			w.Header().Set(wire.EpochHeader, epoch)
		}
		if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			rpc.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func hello(w http.ResponseWriter, _ *http.Request) {
	sum := wire.StreamSum(1)
	sum.Announce(w.Header())
	_, _ = w.Write(wire.Piece(0, wire.PieceSize)) // a client that left is the client's business
}

// stream announces its length and checksum in headers rather than in
// Content-Length: a chunked body is what a proxy must pass on piece by piece.
func stream(w http.ResponseWriter, r *http.Request) {
	ms, err := strconv.Atoi(r.URL.Query().Get("ms"))
	d := time.Duration(ms) * time.Millisecond
	if err != nil || d < 0 || d > maxStream {
		http.Error(w, "ms: want milliseconds, at most a day", http.StatusBadRequest)
		return
	}
	sum := wire.StreamSum(wire.Pieces(d))
	sum.Announce(w.Header())
	if err := send(w, r, d); err != nil {
		// A handler that just returns would end the body in good order.
		panic(http.ErrAbortHandler)
	}
}

func send(w http.ResponseWriter, r *http.Request, d time.Duration) error {
	flush := http.NewResponseController(w)
	beat := time.NewTicker(wire.Beat)
	defer beat.Stop()
	for i := range wire.Pieces(d) {
		if i > 0 {
			select {
			case <-beat.C:
			case <-r.Context().Done():
				return r.Context().Err()
			}
		}
		if _, err := w.Write(wire.Piece(i, wire.PieceSize)); err != nil {
			return fmt.Errorf("piece %d: %w", i, err)
		}
		if err := flush.Flush(); err != nil {
			return fmt.Errorf("piece %d: %w", i, err)
		}
	}
	return nil
}

func echo(w http.ResponseWriter, r *http.Request) {
	var got wire.Sum
	if _, err := io.Copy(&got, r.Body); err != nil {
		http.Error(w, "request body: "+err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set(wire.ReceivedHeader, got.String())
	hello(w, r)
}
