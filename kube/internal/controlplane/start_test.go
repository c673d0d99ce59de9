package controlplane

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// holder is the environment variable that makes TestParent start a control plane and hold
// it until the process is killed.
const holder = "BERTH_TEST_HOLD_CONTROL_PLANE"

func TestStartErrors(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx     context.Context
		options Options
		want    []string
	}{
		"unknown component": {
			options: Options{Components: []Component{"kubelet"}},
			want:    []string{`unknown component "kubelet"`, "kube-scheduler"},
		},
		"flags of a component that is not run": {
			options: Options{Flags: map[Component][]string{Kwok: {"--v=1"}}},
			want:    []string{`flags are given for "kwok"`},
		},
		"process ends": {
			options: Options{Flags: map[Component][]string{Etcd: {"--no-such-flag"}}},
			want:    []string{"etcd is not ready", "exit status", "no-such-flag"},
		},
		"cancelled": {
			ctx:  cancelled,
			want: []string{"etcd is not ready", "context canceled"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			checkGoroutines(t)
			temporary := t.TempDir()
			t.Setenv("TMPDIR", temporary)
			ctx := test.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			cp, err := Start(ctx, test.options)
			if err == nil {
				t.Fatalf("Start returned no error; Stop: %v", cp.Stop())
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not contain %q:\n%v", want, err)
				}
			}
			if left, err := filepath.Glob(filepath.Join(temporary, "berth-controlplane-[0-9]*")); err != nil || len(left) > 0 {
				t.Errorf("directories %v are left, error %v", left, err)
			}
		})
	}
}

func TestBinaries(t *testing.T) {
	root := t.TempDir()
	inside := filepath.Join(root, "a", "b")
	for _, dir := range []string{inside, filepath.Join(root, "hack", "kube"), filepath.Join(root, "bin", "kube")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(inside)
	if _, err := Binaries(); err == nil || !strings.Contains(err.Error(), "not inside the repository") {
		t.Errorf("outside of a repository: error %v", err)
	}
	for _, name := range []string{"hack/kube/go.mod", "bin/kube/etcd"} {
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if dir, err := binaries([]Component{Etcd}); err != nil || dir != filepath.Join(root, "bin", "kube") {
		t.Errorf("directory %q, error %v", dir, err)
	}
	_, err := binaries([]Component{Etcd, APIServer})
	if err == nil || !strings.Contains(err.Error(), "make kube-tools") || !strings.Contains(err.Error(), "kube-apiserver") {
		t.Errorf("with a missing binary: error %v", err)
	}
}

func TestPorts(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var first, second ports
	seen := map[string]bool{}
	for i := range 200 {
		p := &first
		if i%2 == 1 {
			p = &second
		}
		port, err := p.reserve()
		if err != nil {
			t.Fatal(err)
		}
		if number, err := strconv.Atoi(port); err != nil || number < firstPort || number >= firstPort+portCount || seen[port] {
			t.Fatalf("port %q is out of range or was reserved before", port)
		}
		seen[port] = true
	}
	for _, p := range []*ports{&first, &second} {
		if err := p.release(); err != nil || len(*p) > 0 {
			t.Errorf("%d reservations are left, error %v", len(*p), err)
		}
	}
}

// TestParent checks that the processes of a control plane end with a test process that is
// killed and so cannot stop them.
func TestParent(t *testing.T) {
	if os.Getenv(holder) != "" {
		hold(t)
	}
	checkGoroutines(t)
	parent := exec.Command(os.Args[0], "-test.run=^TestParent$")
	parent.Env = append(os.Environ(), holder+"=1", "TMPDIR="+t.TempDir())
	output, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var etcd, server int
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if n, _ := fmt.Sscanf(lines.Text(), "running %d %d", &etcd, &server); n == 2 {
			break
		}
		t.Log(lines.Text())
	}
	if !exists(etcd) || !exists(server) {
		t.Fatalf("the control plane does not run: %v", parent.Wait())
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := parent.Wait(); err == nil {
		t.Error("the killed process has ended without an error")
	}
	waitFor(t, "the end of the processes", func() (bool, error) {
		return ended(etcd) && ended(server), fmt.Errorf("etcd is process %d, kube-apiserver %d", etcd, server)
	})
}

// hold starts a control plane, prints its process identifiers and does not return.
func hold(t *testing.T) {
	cp := StartForTest(t, Options{})
	fmt.Printf("running %d %d\n", cp.Pid(Etcd), cp.Pid(APIServer))
	select {}
}
