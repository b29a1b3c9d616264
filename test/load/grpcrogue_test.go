package load_test

import (
	"net"
	"testing"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"aether.internal/test/load"
	"aether.internal/test/load/internal/wire"
)

// rogueGRPC serves Chat in this way until the test ends.
func rogueGRPC(t *testing.T, chat func(grpc.ServerStream) error) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	desc := wire.ServiceDesc()
	desc.Streams[0].Handler = func(_ any, s grpc.ServerStream) error { return chat(s) }
	server := grpc.NewServer(grpc.ForceServerCodec(wire.Codec{}))
	server.RegisterService(desc, nil)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }() // joined by the cleanup
	t.Cleanup(func() { server.Stop(); <-done })
	return l.Addr().String()
}

func TestEachGRPCMisdeedIsCountedUnderItsHeading(t *testing.T) {
	t.Parallel()
	for _, m := range []struct {
		name    string
		heading string
		chat    func(grpc.ServerStream) error
	}{
		{"unavailable at the start", "wrong", func(grpc.ServerStream) error { return status.Error(codes.Unavailable, "no healthy upstream") }},
		{"unavailable in the middle", "wrong", func(s grpc.ServerStream) error {
			_ = echoOnce(s, 0)
			return status.Error(codes.Unavailable, "overloaded")
		}},
		{"a changed message", "wrong", func(s grpc.ServerStream) error { return echoOnce(s, 1) }},
		{"a call that ends early and well", "cut", func(s grpc.ServerStream) error { return echoOnce(s, 0) }},
		{"a message too many", "wrong", func(s grpc.ServerStream) error {
			for echoOnce(s, 0) == nil {
			}
			return echoOnce(s, 0)
		}},
		{"silence", "timeout", func(s grpc.ServerStream) error { <-s.Context().Done(); return s.Context().Err() }},
	} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			target := load.Target{HTTP: rogueGRPC(t, m.chat)}
			onlyFailures(t, suffer(t, misdeed{kind: load.GRPC, heading: m.heading}, target), m.heading)
		})
	}
}

func echoOnce(s grpc.ServerStream, change byte) error {
	var frame []byte
	if err := s.RecvMsg(&frame); err != nil {
		frame = []byte("at the end")
		_ = s.SendMsg(&frame)
		return err
	}
	frame[0] += change
	return s.SendMsg(&frame)
}

// The connection below a call is cut, in the beginning or in the middle.
func TestACutGRPCConnection(t *testing.T) {
	t.Parallel()
	for _, heading := range []string{"cut", "reset"} {
		t.Run(heading, func(t *testing.T) {
			t.Parallel()
			address := rogue(t, nil, speakH2(func(f *framed, _ int) {
				f.settle()
				if heading == "reset" {
					f.reset()
				}
			}))
			onlyFailures(t, sufferAlone(t, misdeed{kind: load.GRPC, heading: heading}, load.Target{HTTP: address}), heading)
		})
	}
}

// What a draining server does: the call in flight ends well, the next one
// finds a new connection.
func TestGRPCObeysGOAWAY(t *testing.T) {
	t.Parallel()
	address := rogue(t, nil, speakH2(func(f *framed, n int) { f.echoCalls(n == 0) }))
	k := oneByOne(t, load.GRPC, address, true, 3)
	if k.Failed != 0 || k.ToldToClose != 1 {
		t.Errorf("want 1 reconnect, 0 failed: %+v", k)
	}
}

// echoCalls is a gRPC echo, frame by frame. With goAway it says so during its
// first call, and answers no other.
func (f *framed) echoCalls(goAway bool) {
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.HeadersFrame:
			f.fields(frame.StreamID, false, ":status", "200", "content-type", "application/grpc+raw")
			if goAway {
				_ = f.WriteGoAway(frame.StreamID, http2.ErrCodeNo, nil)
			}
		case *http2.DataFrame:
			if len(frame.Data()) > 0 {
				_ = f.WriteData(frame.StreamID, false, frame.Data())
			}
			if frame.StreamEnded() {
				f.fields(frame.StreamID, true, "grpc-status", "0")
			}
		}
	}
}
