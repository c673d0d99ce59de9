package e2e

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// spanCollector keeps the spans that it receives.
type spanCollector struct {
	collector.UnimplementedTraceServiceServer
	mu   sync.Mutex
	list []*spans.Span
}

func (c *spanCollector) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range r.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			c.list = append(c.list, scope.Spans...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// path returns the names of the span and of those that it is part of, the outermost first.
func (c *spanCollector) path(s *spans.Span) string {
	for _, parent := range c.list {
		if len(s.ParentSpanId) > 0 && string(parent.SpanId) == string(s.ParentSpanId) {
			if s.StartTimeUnixNano < parent.StartTimeUnixNano {
				return "a span that begins before " + parent.Name
			}
			return c.path(parent) + " > " + s.Name
		}
	}
	return s.Name
}

// TestTracing checks that a session, its jobs and its hooks arrive at a collector as spans.
func TestTracing(t *testing.T) {
	w := newWorld(t)
	w.addNodes(1)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	received := &spanCollector{}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, received)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	p := w.scheduler("--tracing-endpoint", listener.Addr().String(), "--tracing-sampling-rate-per-million", "1000000")
	w.create(pod("fits", 1), pod("toolarge", 9))
	w.eventually(func() string { return w.allBound("fits") })
	p.stop() // sends the last spans
	paths := map[string]int{}
	received.mu.Lock()
	defer received.mu.Unlock()
	for _, s := range received.list {
		paths[received.path(s)]++
	}
	for _, want := range []string{
		"session",
		"session > hook NodeResourcesFit/OnSessionOpen",
		"session > pod/default/fits",
		"session > pod/default/toolarge",
		"session > pod/default/fits > hook NodeResourcesFit/AddShapeFilter",
	} {
		if paths[want] == 0 {
			t.Errorf("no span %q; there are:\n%s", want, strings.ReplaceAll(fmt.Sprint(paths), " session", "\n"))
		}
	}
}
