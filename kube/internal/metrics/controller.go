package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Controller are the metrics of berth-controller. The methods are safe for concurrent use.
type Controller struct {
	registry  *prometheus.Registry
	admission *prometheus.HistogramVec
}

// NewController returns metrics without values.
func NewController() *Controller {
	m := &Controller{registry: prometheus.NewRegistry(), admission: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "berth_model_admission_duration_seconds", Help: "How long admission requests about models took, by result: allowed, denied, warned or failed.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
	}, []string{"result"})}
	m.registry.MustRegister(m.admission, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler serves the metrics.
func (m *Controller) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Admission notes the answer to an admission request.
func (m *Controller) Admission(result string, took time.Duration) {
	m.admission.WithLabelValues(result).Observe(took.Seconds())
}
