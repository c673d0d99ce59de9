package trace

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/component-base/tracing"
	tracingapi "k8s.io/component-base/tracing/api/v1"
)

// Options of a Tracer.
type Options struct {
	Endpoint       string // host:port of the collector; "" means that no spans are made
	RatePerMillion int32  // how many of a million sessions have spans
	Service        string // the name of the program
}

// Tracer sends spans to a collector. A collector that cannot be reached has no effect on
// decisions: spans that do not fit into a queue of fixed length are dropped.
type Tracer struct {
	tracer   trace.Tracer
	provider tracing.TracerProvider
}

// Start returns a Tracer; nil if there is no collector.
func Start(ctx context.Context, o Options) (*Tracer, error) {
	if o.Endpoint == "" {
		return nil, nil
	}
	provider, err := tracing.NewProvider(ctx,
		&tracingapi.TracingConfiguration{Endpoint: &o.Endpoint, SamplingRatePerMillion: &o.RatePerMillion}, nil,
		[]resource.Option{resource.WithAttributes(attribute.String("service.name", o.Service)), resource.WithHost()})
	if err != nil {
		return nil, err
	}
	return &Tracer{provider.Tracer("github.com/berth-project/berth/kube"), provider}, nil
}

// stopTime is how long Stop waits for the collector.
const stopTime = 2 * time.Second

// Stop sends the last spans. They are lost if the collector does not answer in time.
func (t *Tracer) Stop() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	_ = t.provider.Shutdown(ctx)
}
