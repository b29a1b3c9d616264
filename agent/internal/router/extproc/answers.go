package extproc

import (
	"context"
	"errors"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	httpstatus "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"aether.internal/agent/internal/router/parking"
)

// Reasons of a rejection, as metrics and clients (header x-atenet-reason) see them.
const (
	ReasonFull    = "queue_full"
	ReasonTimeout = "park_timeout"
	ReasonClosed  = "stopping"
	ReasonNoPool  = "no_pool"
	ReasonLeft    = "client_left" // nobody sees the answer
)

// Reasons are all of them.
var Reasons = []string{ReasonFull, ReasonTimeout, ReasonClosed, ReasonNoPool, ReasonLeft}

// Reason of an error of acquire.
func Reason(err error) string {
	switch {
	case errors.Is(err, parking.ErrFull):
		return ReasonFull
	case errors.Is(err, parking.ErrTimeout):
		return ReasonTimeout
	case errors.Is(err, parking.ErrClosed):
		return ReasonClosed
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return ReasonLeft
	}
	return ReasonNoPool
}

// routed sends a request to a worker. Envoy would route by the headers it had:
// the header is only read by the cluster, so the route stays.
func routed(address string) *extproc.ProcessingResponse {
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestHeaders{
		RequestHeaders: &extproc.HeadersResponse{Response: &extproc.CommonResponse{
			HeaderMutation: &extproc.HeaderMutation{SetHeaders: []*core.HeaderValueOption{header(WorkerHeader, address)}},
		}},
	}}
}

// rejection is a 503 that says why, and when to come back.
func rejection(reason string, err error) *extproc.ProcessingResponse {
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ImmediateResponse{
		ImmediateResponse: &extproc.ImmediateResponse{
			Status: &httpstatus.HttpStatus{Code: httpstatus.StatusCode_ServiceUnavailable},
			Headers: &extproc.HeaderMutation{SetHeaders: []*core.HeaderValueOption{
				header("retry-after", "1"), header("x-atenet-reason", reason),
			}},
			Body:    []byte(err.Error() + "\n"),
			Details: "atenet_" + reason,
		},
	}}
}

func header(name, value string) *core.HeaderValueOption {
	return &core.HeaderValueOption{
		Header:       &core.HeaderValue{Key: name, RawValue: []byte(value)},
		AppendAction: core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}

// proceed answers what needs no decision; nil: it shouldn't have come.
func proceed(in *extproc.ProcessingRequest) *extproc.ProcessingResponse {
	out := &extproc.ProcessingResponse{}
	switch in.GetRequest().(type) {
	case *extproc.ProcessingRequest_RequestHeaders:
		out.Response = &extproc.ProcessingResponse_RequestHeaders{RequestHeaders: &extproc.HeadersResponse{}}
	case *extproc.ProcessingRequest_ResponseHeaders:
		out.Response = &extproc.ProcessingResponse_ResponseHeaders{ResponseHeaders: &extproc.HeadersResponse{}}
	case *extproc.ProcessingRequest_RequestTrailers:
		out.Response = &extproc.ProcessingResponse_RequestTrailers{RequestTrailers: &extproc.TrailersResponse{}}
	case *extproc.ProcessingRequest_ResponseTrailers:
		out.Response = &extproc.ProcessingResponse_ResponseTrailers{ResponseTrailers: &extproc.TrailersResponse{}}
	default:
		return nil
	}
	return out
}
