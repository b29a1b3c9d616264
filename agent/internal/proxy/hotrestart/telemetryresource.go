package hotrestart

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
)

// serviceName is what we are unless OTEL_SERVICE_NAME says otherwise.
const serviceName = "aether-proxy-supervisor"

// newResource says who sends: service, version, host, and node and pod where the
// environment knows them (the charts set these variables from the downward API).
// OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME win.
func newResource(ctx context.Context, cfg TelemetryConfig) (*resource.Resource, error) {
	host, _ := os.Hostname() // "" is left out
	pod, namespace := os.Getenv("POD_NAME"), os.Getenv("POD_NAMESPACE")
	known := []attribute.KeyValue{
		attribute.String("service.name", cmp.Or(cfg.ServiceName, serviceName)),
		attribute.String("service.version", cfg.ServiceVersion),
		attribute.String("host.name", host),
		// Two pods of one node overlap at every surge, and a host may have two
		// supervisors: they must not be one series.
		attribute.String("service.instance.id", fmt.Sprintf("%s/%d", cmp.Or(pod, host), cfg.BaseID)),
		attribute.String("k8s.node.name", os.Getenv("NODE_NAME")),
		attribute.String("k8s.pod.name", pod),
		attribute.String("k8s.namespace.name", namespace),
	}
	var said []attribute.KeyValue
	for _, a := range known {
		if a.Value.AsString() != "" {
			said = append(said, a)
		}
	}
	return resource.New(ctx, resource.WithAttributes(said...), resource.WithTelemetrySDK(), resource.WithFromEnv())
}
