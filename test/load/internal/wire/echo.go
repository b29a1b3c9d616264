package wire

import (
	"errors"
	"io"

	"google.golang.org/grpc"
)

// echo sends every frame back until the client has said all it wants to say.
func echo(s grpc.ServerStream) error {
	var frame []byte
	for {
		switch err := s.RecvMsg(&frame); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := s.SendMsg(&frame); err != nil {
			return err
		}
	}
}
