// Package metrics has the metrics of berth-scheduler. They are named after the stable metrics
// of kube-scheduler, with the prefix berth_, so that dashboards and alerts carry over. The
// values of labels are from fixed lists, except for profile, which has one value for each name
// of a scheduler.
package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The results of an attempt to place a pod.
const (
	Scheduled     = "scheduled"
	Unschedulable = "unschedulable"
	Error         = "error"
)

// What a dry run found when another scheduler bound a pod.
const (
	Same  = "same"  // the dry run had chosen the same node
	Other = "other" // the dry run had chosen another node
	Later = "later" // the dry run had not placed the pod yet
)

// The kinds of request.
const (
	Binding     = "binding"
	Eviction    = "eviction"
	Preparation = "preparation" // of a pod with claims: what it claims is allocated before it is bound
)

// Pending is how many pods are pending, by why.
type Pending struct {
	Active        int // they are tried in the next session
	Unschedulable int // they were refused, and wait for a change or for the end of a back-off
	Gated         int // they are not considered: their group has too few pods, or they are not valid
}

// Metrics are the metrics of one scheduler. The methods are safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry

	attempts        *prometheus.CounterVec
	attemptTime     *prometheus.HistogramVec
	sessionTime     prometheus.Histogram
	sessionErrors   prometheus.Counter
	preemptions     prometheus.Counter
	victims         prometheus.Histogram
	requestTime     *prometheus.HistogramVec
	requests        *prometheus.CounterVec
	scheduling      prometheus.Histogram
	rejectedFacts   prometheus.Counter
	reportsWaiting  prometheus.GaugeFunc
	requestsWaiting *prometheus.GaugeVec
	leads           prometheus.Gauge
	doubleBookings  prometheus.Counter
	compared        *prometheus.CounterVec
}

// Sources are functions that metrics are read from when they are collected.
type Sources struct {
	Pending func() Pending
	Reports func() int // how many reports to pods were not sent yet
}

// New returns metrics that are all zero.
func New(s Sources) *Metrics {
	seconds := func(from float64, count int) []float64 { return prometheus.ExponentialBuckets(from, 2, count) }
	m := &Metrics{
		registry:        prometheus.NewRegistry(),
		attempts:        counters("schedule_attempts_total", "Attempts to place a pod, by result and profile.", "result", "profile"),
		attemptTime:     histograms("scheduling_attempt_duration_seconds", "Time of an attempt to place a job: the time of a session divided by the jobs that it tried.", seconds(0.000016, 20), "result", "profile"),
		sessionTime:     prometheus.NewHistogram(prometheus.HistogramOpts{Name: name("session_duration_seconds"), Help: "Time of a session.", Buckets: seconds(0.00002, 22)}),
		sessionErrors:   prometheus.NewCounter(prometheus.CounterOpts{Name: name("session_errors_total"), Help: "Sessions that ended with an error."}),
		preemptions:     prometheus.NewCounter(prometheus.CounterOpts{Name: name("preemption_attempts_total"), Help: "Jobs for which pods were evicted."}),
		victims:         prometheus.NewHistogram(prometheus.HistogramOpts{Name: name("preemption_victims"), Help: "Pods that were evicted for one job.", Buckets: prometheus.ExponentialBuckets(1, 2, 7)}),
		requestTime:     histograms("request_duration_seconds", "Time until the API server gave a definite answer, by kind of request.", seconds(0.001, 15), "kind"),
		requests:        counters("requests_total", "Bindings and evictions, by kind and outcome.", "kind", "outcome"),
		scheduling:      prometheus.NewHistogram(prometheus.HistogramOpts{Name: name("pod_scheduling_sli_duration_seconds"), Help: "Time from the creation of a pod to its binding.", Buckets: seconds(0.01, 20)}),
		rejectedFacts:   prometheus.NewCounter(prometheus.CounterOpts{Name: name("facts_rejected_total"), Help: "Facts that were rejected as malformed."}),
		requestsWaiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name("requests_waiting"), Help: "Bindings and evictions that were decided and not sent yet."}, []string{"kind"}),
		compared:        counters("dry_run_compared_total", "Pods that another scheduler bound during a dry run, by whether the dry run had chosen the same node.", "result"),
		doubleBookings:  prometheus.NewCounter(prometheus.CounterOpts{Name: name("double_bookings_total"), Help: "Devices that the watch reported as held by several pods that cannot share them."}),
		leads:           prometheus.NewGauge(prometheus.GaugeOpts{Name: name("leader"), Help: "1 if this process is the leader."}),
		reportsWaiting:  prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name("reports_waiting"), Help: "Pods with a condition that was not written yet."}, func() float64 { return float64(s.Reports()) }),
	}
	m.registry.MustRegister(m.attempts, m.attemptTime, m.sessionTime, m.sessionErrors, m.preemptions, m.victims, m.requestTime, m.requests,
		m.scheduling, m.rejectedFacts, m.requestsWaiting, m.leads, m.reportsWaiting, m.doubleBookings, m.compared, pending{s.Pending},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func name(of string) string { return "berth_" + of }

func counters(of, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name(of), Help: help}, labels)
}

func histograms(of, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name(of), Help: help, Buckets: buckets}, labels)
}

// pending collects pending_pods.
type pending struct{ count func() Pending }

var pendingPods = prometheus.NewDesc(name("pending_pods"), "Pending pods, by why they are pending.", []string{"queue"}, nil)

// Describe implements prometheus.Collector.
func (p pending) Describe(out chan<- *prometheus.Desc) { out <- pendingPods }

// Collect implements prometheus.Collector.
func (p pending) Collect(out chan<- prometheus.Metric) {
	n := p.count()
	for queue, count := range map[string]int{"active": n.Active, "unschedulable": n.Unschedulable, "gated": n.Gated} {
		out <- prometheus.MustNewConstMetric(pendingPods, prometheus.GaugeValue, float64(count), queue)
	}
}

// Describe sends the descriptions of all metrics.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) { m.registry.Describe(out) }

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Session counts a session that tried jobs.
func (m *Metrics) Session(took time.Duration, err error) {
	m.sessionTime.Observe(took.Seconds())
	if err != nil {
		m.sessionErrors.Inc()
	}
}

// Attempts counts pods that were placed or refused, in jobs that took the given time each.
func (m *Metrics) Attempts(result, profile string, pods int, each time.Duration) {
	m.attempts.WithLabelValues(result, profile).Add(float64(pods))
	m.attemptTime.WithLabelValues(result, profile).Observe(each.Seconds())
}

// Preempted counts the pods that were evicted for one job.
func (m *Metrics) Preempted(pods int) {
	m.preemptions.Inc()
	m.victims.Observe(float64(pods))
}

// Request counts a binding or an eviction.
func (m *Metrics) Request(kind, outcome string, took time.Duration) {
	m.requests.WithLabelValues(kind, outcome).Inc()
	m.requestTime.WithLabelValues(kind).Observe(took.Seconds())
}

// Bound counts a pod that was bound, by the time since its creation.
func (m *Metrics) Bound(sinceCreation time.Duration) { m.scheduling.Observe(sinceCreation.Seconds()) }

// Compared counts a pod that another scheduler bound during a dry run.
func (m *Metrics) Compared(result string) { m.compared.WithLabelValues(result).Inc() }

// DoubleBooked counts a device that several pods hold.
func (m *Metrics) DoubleBooked() { m.doubleBookings.Inc() }

// RejectedFact counts a fact that was rejected.
func (m *Metrics) RejectedFact() { m.rejectedFacts.Inc() }

// Turn sets the gauges that the loop knows.
func (m *Metrics) Turn(leads bool, bindings, evictions int) {
	m.leads.Set(0)
	if leads {
		m.leads.Set(1)
	}
	m.requestsWaiting.WithLabelValues(Binding).Set(float64(bindings))
	m.requestsWaiting.WithLabelValues(Eviction).Set(float64(evictions))
}
