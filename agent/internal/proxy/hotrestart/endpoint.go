package hotrestart

import (
	"fmt"
	"net"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
)

// address is where a collector listens; the zero value leaves it to the
// environment.
type address struct {
	hostPort string // insecure
	url      string // its scheme decides
}

// CheckEndpoint tells whether an OTLP endpoint can be one; empty means none.
func CheckEndpoint(endpoint string) error {
	_, err := parseEndpoint(endpoint)
	return err
}

// parseEndpoint takes host:port, http://host:port or https://host:port.
func parseEndpoint(endpoint string) (address, error) {
	if endpoint == "" {
		return address{}, nil
	}
	if u, err := url.Parse(endpoint); err == nil && u.Host != "" {
		if u.Scheme != "http" && u.Scheme != "https" || u.Path != "" && u.Path != "/" || u.RawQuery != "" {
			return address{}, fmt.Errorf("OTLP endpoint %q: gRPC takes host:port, http://host:port or https://host:port, without a path", endpoint)
		}
		return address{url: endpoint}, nil
	}
	if host, port, err := net.SplitHostPort(endpoint); err != nil || host == "" || port == "" {
		return address{}, fmt.Errorf("OTLP endpoint %q is neither host:port nor a URL", endpoint)
	}
	return address{hostPort: endpoint}, nil
}

// Retries of one export. The SDK's first pause is 5 s, so that the last export
// would have one try in its two seconds.
const (
	firstRetry = 400 * time.Millisecond
	mostRetry  = 30 * time.Second
	retryTime  = 5 * time.Second
)

func (a address) metricOptions() []otlpmetricgrpc.Option {
	options := []otlpmetricgrpc.Option{otlpmetricgrpc.WithRetry(otlpmetricgrpc.RetryConfig{
		Enabled: true, InitialInterval: firstRetry, MaxInterval: mostRetry, MaxElapsedTime: retryTime,
	})}
	switch {
	case a.hostPort != "":
		return append(options, otlpmetricgrpc.WithEndpoint(a.hostPort), otlpmetricgrpc.WithInsecure())
	case a.url != "":
		return append(options, otlpmetricgrpc.WithEndpointURL(a.url))
	}
	return options
}

func (a address) traceOptions() []otlptracegrpc.Option {
	options := []otlptracegrpc.Option{otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{
		Enabled: true, InitialInterval: firstRetry, MaxInterval: mostRetry, MaxElapsedTime: retryTime,
	})}
	switch {
	case a.hostPort != "":
		return append(options, otlptracegrpc.WithEndpoint(a.hostPort), otlptracegrpc.WithInsecure())
	case a.url != "":
		return append(options, otlptracegrpc.WithEndpointURL(a.url))
	}
	return options
}
