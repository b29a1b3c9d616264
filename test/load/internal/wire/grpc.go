package wire

import (
	"fmt"

	"google.golang.org/grpc"
)

// The gRPC service: one method, a bidirectional echo of raw frames. It is
// registered by hand, since it needs no generated messages.
const (
	Service    = "aether.load.Echo"
	ChatMethod = "/" + Service + "/Chat"
)

// ChatDesc describes Chat to a gRPC client.
var ChatDesc = grpc.StreamDesc{StreamName: "Chat", ClientStreams: true, ServerStreams: true}

// ServiceDesc registers Chat with a server that uses Codec.
func ServiceDesc() *grpc.ServiceDesc {
	chat := ChatDesc
	chat.Handler = func(_ any, s grpc.ServerStream) error { return echo(s) }
	return &grpc.ServiceDesc{ServiceName: Service, HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{chat}}
}

// Codec passes *[]byte through unchanged.
type Codec struct{}

// Name is the content-subtype of the requests.
func (Codec) Name() string { return "raw" }

// Marshal takes a *[]byte.
func (Codec) Marshal(v any) ([]byte, error) {
	p, ok := v.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("raw codec: want *[]byte, got %T", v)
	}
	return *p, nil
}

// Unmarshal fills a *[]byte with a copy: gRPC reuses its buffer.
func (Codec) Unmarshal(data []byte, v any) error {
	p, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("raw codec: want *[]byte, got %T", v)
	}
	*p = append((*p)[:0], data...)
	return nil
}
