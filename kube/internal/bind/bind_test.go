package bind_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/kube/internal/bind"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script answers requests in order. An answer is an error of the connection, an API status,
// or an object.
type script struct {
	mu      sync.Mutex
	answers []any
	asked   []string // method, last parts of the path, and the UID of a binding
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body := []byte{}
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	var meta struct{ Metadata metav1.ObjectMeta }
	_ = json.Unmarshal(body, &meta)
	asked := strings.TrimSpace(r.Method + " " + strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/ml/") + " " + string(meta.Metadata.UID))
	s.asked = append(s.asked, asked)
	next := any(apierrors.NewBadRequest("no answer is left for " + asked)) // ends the request, so that the test fails
	if len(s.answers) > 0 {
		next, s.answers = s.answers[0], s.answers[1:]
	}
	code := http.StatusOK
	if a, fails := next.(error); fails {
		status := apierrors.APIStatus(nil)
		if !errors.As(a, &status) {
			return nil, a
		}
		answer := status.Status()
		answer.TypeMeta = success.TypeMeta
		next, code = &answer, int(answer.Code)
	}
	text, err := json.Marshal(next)
	if err != nil {
		return nil, err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if code == http.StatusTooManyRequests {
		header.Set("Retry-After", "1") // makes clients send the request again, unless that is switched off
	}
	return &http.Response{StatusCode: code, Header: header, Body: io.NopCloser(strings.NewReader(string(text))), Request: r}, nil
}

func pod(uid, node string) *corev1.Pod {
	return &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "p", UID: types.UID(uid)}, Spec: corev1.PodSpec{NodeName: node}}
}

func deleting(p *corev1.Pod) *corev1.Pod {
	now := metav1.NewTime(time.Unix(1, 0))
	p.DeletionTimestamp = &now
	return p
}

var (
	pods     = schema.GroupResource{Resource: "pods"}
	success  = &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess, Code: 201}
	lost     = errors.New("connection reset by peer")
	conflict = apierrors.NewConflict(pods, "p", errors.New("pod p is already assigned to a node"))
	gone     = apierrors.NewNotFound(pods, "p")
	internal = apierrors.NewInternalError(errors.New("etcd is not available"))
	task     = cluster.TaskRef{Job: "pod/ml/p", Name: "0"}
	thePod   = bind.Pod{Namespace: "ml", Name: "p", UID: "u1", Task: task}
)

func budget() error {
	err := apierrors.NewTooManyRequests("cannot evict pod as it would violate the pod's disruption budget", 10)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: policyv1.DisruptionBudgetCause})
	return err
}

// instant is a clock on which no time passes while waiting.
type instant struct{ real }

// send runs one request against the script and returns its result and the requests.
func send(t *testing.T, held func() bool, answers []any, start func(*bind.Sender) bool) (bind.Result, []string) {
	t.Helper()
	s := &script{answers: answers}
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://api", Transport: s, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	results := make(chan bind.Result, 1)
	sender := bind.New(bind.Options{Client: client, Held: held, Deliver: func(r bind.Result) { results <- r }, Clock: instant{}})
	defer sender.Stop()
	if !start(sender) {
		t.Fatal("no slot is free")
	}
	r := <-results
	r.Took = 0
	if len(s.answers) > 0 {
		t.Errorf("%d answers were not asked for", len(s.answers))
	}
	return r, s.asked
}

func always() bool { return true }

func TestBind(t *testing.T) {
	failed := cluster.BindFailed{Task: task, UID: "u1", Attempt: 3}
	const binding, read = "POST pods/p/binding u1", "GET pods/p"
	tests := map[string]struct {
		answers []any
		want    bind.Outcome
		fact    cluster.Change
		asked   []string
	}{
		"bound":                            {[]any{success}, bind.Done, nil, []string{binding}},
		"the answer is lost":               {[]any{lost, success}, bind.Done, nil, []string{binding, binding}},
		"the answer is lost, it was bound": {[]any{lost, conflict, pod("u1", "n")}, bind.Done, nil, []string{binding, binding, read}},
		"the server has an error":          {[]any{internal, internal, success}, bind.Done, nil, []string{binding, binding, binding}},
		"too many requests":                {[]any{apierrors.NewTooManyRequests("later", 1), success}, bind.Done, nil, []string{binding, binding}},
		"the token has expired":            {[]any{apierrors.NewUnauthorized("no"), success}, bind.Done, nil, []string{binding, binding}},
		"gone":                             {[]any{gone, gone}, bind.Failed, failed, []string{binding, read}},
		"bound elsewhere":                  {[]any{conflict, pod("u1", "other")}, bind.Failed, failed, []string{binding, read}},
		"another pod of the name":          {[]any{conflict, pod("u2", "n")}, bind.Failed, failed, []string{binding, read}},
		"being deleted":                    {[]any{conflict, deleting(pod("u1", ""))}, bind.Failed, failed, []string{binding, read}},
		"forbidden":                        {[]any{apierrors.NewForbidden(pods, "p", errors.New("a webhook says no")), pod("u1", "")}, bind.Failed, failed, []string{binding, read}},
		"a conflict that ends":             {[]any{conflict, pod("u1", ""), success}, bind.Done, nil, []string{binding, read, binding}},
		"a conflict that does not end":     {[]any{conflict, pod("u1", ""), conflict, pod("u1", ""), conflict, pod("u1", ""), conflict, pod("u1", ""), conflict, pod("u1", "")}, bind.Failed, failed, []string{binding, read, binding, read, binding, read, binding, read, binding, read}},
		"the read has an error":            {[]any{conflict, lost, internal, pod("u1", "n")}, bind.Done, nil, []string{binding, read, read, read}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r, asked := send(t, always, tc.answers, func(s *bind.Sender) bool {
				return s.Bind(bind.Binding{Pod: thePod, Attempt: 3, Node: "n"})
			})
			if r.Outcome != tc.want || r.Fact != tc.fact {
				t.Errorf("outcome %v, fact %v (%s); want %v, %v", r.Outcome, r.Fact, r.Reason, tc.want, tc.fact)
			}
			if d := cmp.Diff(tc.asked, asked); d != "" {
				t.Errorf("requests (-want +got):\n%s", d)
			}
			if wasRead := slices.Contains(asked, read); wasRead != (r.Gone || r.Current != nil) || r.Gone && r.Current != nil {
				t.Errorf("gone %t, current %v", r.Gone, r.Current)
			}
			if (r.Outcome == bind.Failed) != (r.Reason != "" && r.Fact != nil) {
				t.Errorf("reason %q with outcome %v", r.Reason, r.Outcome)
			}
		})
	}
}

func TestEvict(t *testing.T) {
	const eviction, read = "POST pods/p/eviction", "GET pods/p"
	tests := map[string]struct {
		answers []any
		want    bind.Outcome
		spared  time.Duration // 0: no fact
		asked   []string
	}{
		"evicted":                    {[]any{success}, bind.Done, 0, []string{eviction}},
		"gone":                       {[]any{gone}, bind.Done, 0, []string{eviction}},
		"a disruption budget":        {[]any{budget()}, bind.Failed, 10 * time.Second, []string{eviction}},
		"too many requests":          {[]any{apierrors.NewTooManyRequests("later", 1), success}, bind.Done, 0, []string{eviction, eviction}},
		"the answer is lost":         {[]any{lost, deleting(pod("u1", "n"))}, bind.Done, 0, []string{eviction, read}},
		"lost, and not evicted":      {[]any{lost, pod("u1", "n"), success}, bind.Done, 0, []string{eviction, read, eviction}},
		"another pod of the name":    {[]any{conflict, pod("u2", "n")}, bind.Done, 0, []string{eviction, read}},
		"a conflict that ends":       {[]any{conflict, pod("u1", "n"), success}, bind.Done, 0, []string{eviction, read, eviction}},
		"forbidden":                  {[]any{apierrors.NewForbidden(pods, "p", errors.New("no")), pod("u1", "n")}, bind.Failed, time.Minute, []string{eviction, read}},
		"two budgets select the pod": {[]any{internal, pod("u1", "n"), internal, pod("u1", "n"), internal, pod("u1", "n"), internal, pod("u1", "n"), internal, pod("u1", "n")}, bind.Failed, time.Minute, []string{eviction, read, eviction, read, eviction, read, eviction, read, eviction, read}},
		"an error, and evicted":      {[]any{internal, gone}, bind.Done, 0, []string{eviction, read}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r, asked := send(t, always, tc.answers, func(s *bind.Sender) bool { return s.Evict(bind.Eviction{Pod: thePod, Attempt: 2}) })
			var fact cluster.Change
			if tc.spared > 0 {
				fact = cluster.EvictionRefused{Task: task, UID: "u1", Attempt: 2, ProtectedUntil: epoch.Add(tc.spared).UnixNano()}
			}
			if r.Outcome != tc.want || r.Fact != fact {
				t.Errorf("outcome %v, fact %v (%s); want %v, %v", r.Outcome, r.Fact, r.Reason, tc.want, fact)
			}
			if d := cmp.Diff(tc.asked, asked); d != "" {
				t.Errorf("requests (-want +got):\n%s", d)
			}
		})
	}
}

// TestLease checks that nothing is sent without the lease. The outcome of a request that was
// sent before is found out when the lease is held again.
func TestLease(t *testing.T) {
	bindIt := func(s *bind.Sender) bool { return s.Bind(bind.Binding{Pod: thePod, Attempt: 3, Node: "n"}) }
	evictIt := func(s *bind.Sender) bool { return s.Evict(bind.Eviction{Pod: thePod, Attempt: 3}) }
	for name, tc := range map[string]struct {
		held    string // one letter for each check: y or n; y after the last
		answers []any
		start   func(*bind.Sender) bool
		want    bind.Outcome
		fact    bool
	}{
		"a binding is not sent":              {"n", nil, bindIt, bind.NotSent, true},
		"a binding is sent again":            {"ynny", []any{lost, success}, bindIt, bind.Done, false},
		"a binding is read":                  {"ynny", []any{conflict, pod("u1", "n")}, bindIt, bind.Done, false},
		"a binding that failed is read":      {"yny", []any{conflict, pod("u1", "other")}, bindIt, bind.Failed, true},
		"a binding with a definite answer":   {"yn", []any{success}, bindIt, bind.Done, false},
		"too many requests":                  {"ynny", []any{apierrors.NewTooManyRequests("later", 1), success}, bindIt, bind.Done, false},
		"an eviction is not sent":            {"n", nil, evictIt, bind.NotSent, true},
		"an eviction is read":                {"ynny", []any{lost, deleting(pod("u1", "n"))}, evictIt, bind.Done, false},
		"an eviction that a budget prevents": {"yn", []any{budget()}, evictIt, bind.Failed, true},
		"an eviction is read and sent again": {"yynny", []any{lost, pod("u1", "n"), success}, evictIt, bind.Done, false},
	} {
		t.Run(name, func(t *testing.T) {
			checks := 0 // one goroutine sends
			held := func() bool {
				checks++
				return checks > len(tc.held) || tc.held[checks-1] == 'y'
			}
			r, _ := send(t, held, tc.answers, tc.start)
			if r.Outcome != tc.want || (r.Fact != nil) != tc.fact {
				t.Errorf("outcome %v, fact %v; want %v, fact %t", r.Outcome, r.Fact, tc.want, tc.fact)
			}
			if checks < len(tc.held) && tc.held != "yn" {
				t.Errorf("the lease was checked %d times, want at least %d", checks, len(tc.held))
			}
		})
	}
}

// TestParallel checks that no more requests are under way than allowed, that a slot is free
// when its result is delivered, and that Stop waits for all results.
func TestParallel(t *testing.T) {
	release := make(chan struct{})
	var under, most atomic.Int32
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
		now := under.Add(1)
		defer under.Add(-1)
		for {
			if was := most.Load(); now <= was || most.CompareAndSwap(was, now) {
				break
			}
		}
		select {
		case <-release:
			return (&script{answers: []any{success}}).RoundTrip(r)
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	})
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://api", Transport: transport, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	results := make(chan bind.Result, 100)
	s := bind.New(bind.Options{Client: client, Held: always, Parallel: 4, Deliver: func(r bind.Result) { results <- r }})
	started := 0
	for s.Bind(bind.Binding{Pod: thePod, Node: "n"}) {
		started++
	}
	if started != 4 {
		t.Errorf("%d requests were started, want 4", started)
	}
	release <- struct{}{}
	if r := <-results; r.Outcome != bind.Done {
		t.Errorf("outcome %v", r.Outcome)
	}
	if !s.Evict(bind.Eviction{Pod: thePod}) {
		t.Error("no slot is free although a result was delivered")
	}
	s.Stop()
	if len(results) != 4 {
		t.Errorf("%d results after Stop, want 4", len(results))
	}
	for range 4 {
		if r := <-results; r.Outcome != bind.Unknown && r.Outcome != bind.NotSent {
			t.Errorf("outcome %v of a request that was under way at Stop", r.Outcome)
		}
	}
	if most.Load() > 4 {
		t.Errorf("%d requests at the same time", most.Load())
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestLeaseAfterLimit checks that a request that waits for the limit of the client is not sent if
// the lease is lost meanwhile.
func TestLeaseAfterLimit(t *testing.T) {
	s := &script{answers: []any{success}}
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://api", Transport: s, QPS: 5, Burst: 1})
	if err != nil {
		t.Fatal(err)
	}
	var lost atomic.Bool
	results := make(chan bind.Result, 2)
	sender := bind.New(bind.Options{Client: client, Held: func() bool { return !lost.Load() }, Deliver: func(r bind.Result) { results <- r }})
	defer sender.Stop()
	for _, want := range []bind.Outcome{bind.Done, bind.NotSent} {
		if !sender.Bind(bind.Binding{Pod: thePod, Node: "n"}) {
			t.Fatal("no slot is free")
		}
		if lost.Load() {
			t.Fatal("the lease was lost too early")
		}
		if want == bind.NotSent {
			time.Sleep(20 * time.Millisecond) // the request waits for 200 ms
			lost.Store(true)
		}
		if r := <-results; r.Outcome != want {
			t.Errorf("outcome %v, want %v", r.Outcome, want)
		}
	}
}
