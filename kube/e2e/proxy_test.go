package e2e

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// rates are the probabilities of faults.
type rates struct {
	refuse float64 // answer with 409, 429, 500 or 503, and do not forward the request
	hang   float64 // do not forward the request, and end the connection after some time
	lose   float64 // forward the request, and end the connection instead of answering
	late   float64 // end the connection, and forward the request some time later
	stale  float64 // per piece of a watch: deliver it and all that follow some time later
	cut    float64 // per piece of a watch: end the watch before it
}

// sent is a request that a proxy received.
type sent struct {
	method, path string
	at           time.Time
}

// binds reports whether the request is a binding.
func (s *sent) binds() bool { return strings.HasSuffix(s.path, "/binding") }

// reports reports whether the request writes the status of a pod.
func (s *sent) reports() bool {
	return s.method == http.MethodPatch && strings.HasSuffix(s.path, "/status") && strings.Contains(s.path, "/pods/")
}

// writes reports whether the request changes objects other than leases and events.
func (s *sent) writes() bool {
	return s.method != http.MethodGet && !strings.Contains(s.path, "/leases") && !strings.Contains(s.path, "/events")
}

// proxy is between a scheduler and the API server. It speaks HTTP without TLS to the scheduler, and
// forwards requests with the permissions of berth-scheduler.
type proxy struct {
	*httptest.Server
	w         *world
	upstream  string
	transport http.RoundTripper
	late      sync.WaitGroup // requests that are forwarded later

	mu     sync.Mutex
	random *rand.Rand
	rates  rates
	hook   func(*http.Request) int
	log    []sent
	faults map[string]int
	frozen chan struct{} // watches deliver nothing until it is closed; nil: they deliver
}

// newProxy returns a proxy that forwards all requests without faults.
func (w *world) newProxy(seed uint64) *proxy {
	w.Helper()
	config := w.config()
	transport, err := rest.TransportFor(config)
	if err != nil {
		w.Fatal(err)
	}
	p := &proxy{w: w, upstream: config.Host, transport: transport, random: rand.New(rand.NewPCG(seed, 1)), faults: map[string]int{}}
	p.Server = httptest.NewServer(p)
	w.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
		p.late.Wait()
	})
	return p
}

// config returns the configuration of clients that use the proxy.
func (p *proxy) config() *rest.Config { return &rest.Config{Host: p.URL, QPS: 500, Burst: 1000} }

// kubeconfig returns the path of a kubeconfig file for clients that use the proxy.
func (p *proxy) kubeconfig() string {
	p.w.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["proxy"] = &clientcmdapi.Cluster{Server: p.URL}
	c.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy"}
	c.CurrentContext = "proxy"
	dir, err := os.MkdirTemp(p.w.Logs, "proxy-")
	if err != nil {
		p.w.Fatal(err)
	}
	path := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		p.w.Fatal(err)
	}
	return path
}

// set sets the probabilities of faults for requests that arrive from now on, and for pieces of
// watches that are delivered from now on.
func (p *proxy) set(r rates) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rates = r
}

// before sets what is called with each request before it is forwarded. If it does not return 0,
// the request is refused with that code.
func (p *proxy) before(hook func(*http.Request) int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hook = hook
}

// freeze makes watches deliver nothing until the function that it returns is called.
func (p *proxy) freeze() (resume func()) {
	gate := make(chan struct{})
	p.mu.Lock()
	p.frozen = gate
	p.mu.Unlock()
	resume = sync.OnceFunc(func() {
		p.mu.Lock()
		p.frozen = nil
		p.mu.Unlock()
		close(gate)
	})
	p.w.Cleanup(resume)
	return resume
}

// requests returns the requests that were received so far.
func (p *proxy) requests() []sent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]sent(nil), p.log...)
}

// counts returns how many faults of each kind there were.
func (p *proxy) counts() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[string]int{}
	for k, n := range p.faults {
		out[k] = n
	}
	return out
}

// draw returns which of the faults happens, and a time for it. The fault is "" if none does.
func (p *proxy) draw(kinds ...string) (kind string, within time.Duration, code int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.random.Float64()
	within = time.Duration(p.random.IntN(400)) * time.Millisecond
	code = [...]int{http.StatusConflict, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable}[p.random.IntN(4)]
	rate := map[string]float64{
		"refuse": p.rates.refuse, "hang": p.rates.hang, "lose": p.rates.lose, "late": p.rates.late,
		"stale": p.rates.stale, "cut": p.rates.cut,
	}
	for _, k := range kinds {
		if x < rate[k] {
			p.faults[k]++
			return k, within, code
		}
		x -= rate[k]
	}
	return "", 0, 0
}

// ServeHTTP forwards a request, or does not.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.log = append(p.log, sent{r.Method, r.URL.Path, time.Now()})
	hook := p.hook
	p.mu.Unlock()
	if hook != nil {
		if code := hook(r); code != 0 {
			refuse(w, code)
			return
		}
	}
	if watch := r.URL.Query().Get("watch"); watch == "true" || watch == "1" {
		p.watch(w, r)
		return
	}
	fault, within, code := p.draw("refuse", "hang", "lose", "late")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	switch fault {
	case "refuse":
		refuse(w, code)
		return
	case "hang":
		time.Sleep(within)
		panic(http.ErrAbortHandler)
	case "late":
		again := r.Clone(p.w.ctx)
		p.late.Go(func() {
			time.Sleep(within)
			if answer, err := p.forward(again, string(body)); err == nil {
				_ = answer.Body.Close()
			}
		})
		panic(http.ErrAbortHandler)
	}
	answer, err := p.forward(r, string(body))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer answer.Body.Close()
	if fault == "lose" {
		panic(http.ErrAbortHandler)
	}
	copyHead(w, answer)
	_, _ = io.Copy(w, answer.Body)
}

// refuse answers as the API server does that cannot carry out a request.
func refuse(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "application/json")
	if code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(code)
	reason := map[int]metav1.StatusReason{
		http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusConflict: metav1.StatusReasonConflict, http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests,
		http.StatusInternalServerError: metav1.StatusReasonInternalError, http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
	}[code]
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "a fault of the test",
	})
}

// forward sends the request to the API server.
func (p *proxy) forward(r *http.Request, body string) (*http.Response, error) {
	out, err := http.NewRequestWithContext(r.Context(), r.Method, p.upstream+r.URL.RequestURI(), strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	out.Header = r.Header.Clone()
	return p.transport.RoundTrip(out)
}

// watch forwards a watch, piece by piece.
func (p *proxy) watch(w http.ResponseWriter, r *http.Request) {
	answer, err := p.forward(r, "")
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer answer.Body.Close()
	copyHead(w, answer)
	flusher := http.NewResponseController(w)
	_ = flusher.Flush()
	piece := make([]byte, 64<<10)
	for {
		n, err := answer.Body.Read(piece)
		p.mu.Lock()
		gate := p.frozen
		p.mu.Unlock()
		if gate != nil {
			<-gate
		}
		switch fault, within, _ := p.draw("stale", "cut"); fault {
		case "stale":
			time.Sleep(5 * within)
		case "cut":
			panic(http.ErrAbortHandler)
		}
		if _, failed := w.Write(piece[:n]); failed != nil || err != nil {
			return
		}
		_ = flusher.Flush()
	}
}

func copyHead(w http.ResponseWriter, answer *http.Response) {
	for k, values := range answer.Header {
		w.Header()[k] = values
	}
	w.WriteHeader(answer.StatusCode)
}
