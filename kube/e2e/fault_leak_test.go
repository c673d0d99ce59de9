package e2e

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestLeaks checks that no goroutine is left after Run has returned, while the API server
// answers and after it has ended.
func TestLeaks(t *testing.T) {
	w := newWorld(t)
	w.addNodes(2)
	run := func(name string) (*inProcess, *proxy) {
		p := w.newProxy(1)
		s := w.newInProcess(p.config(), always)
		w.createGang(name, 3, 3, 1)
		w.create(pod(name+"-large", 9))
		w.eventually(func() string { return w.allBound(name + "-0") })
		return s, p
	}
	finish := func(s *inProcess, p *proxy) {
		began := time.Now()
		s.end()
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("Run returned %s after its context ended", took)
		} else {
			t.Logf("Run returned %s after its context ended", took)
		}
		p.CloseClientConnections() // a client of HTTP keeps idle connections
		p.Close()
	}
	finish(run("warm")) // connections to the API server that are shared with the next runs
	known := goleak.IgnoreCurrent()
	finish(run("up"))
	if err := goleak.Find(known); err != nil {
		t.Errorf("while the API server runs: %v", err)
	}
	s, p := run("down")
	if err := w.cp.Stop(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // requests fail, and are tried again
	finish(s, p)
	if err := goleak.Find(known); err != nil {
		t.Errorf("after the API server has ended: %v", err)
	}
}
