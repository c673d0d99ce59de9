package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/berth-project/berth/kube/internal/controlplane"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// marked matches code in a page that has a comment above it, which may be indented:
// "run" and "start" for commands, "prints" for what the last command prints, "file: PATH" for a whole file, "after: N pods" for manifests.
var marked = regexp.MustCompile("(?m)^( *)<!-- ([a-z]+)(?:: (.*))? -->\n *```[a-z]*\n((?s).*?) *```$")

// sample is code in a page.
type sample struct{ kind, about, text string }

// samples returns the code in a page that has a comment above it.
func samples(t *testing.T, page string) []sample {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	var out []sample
	for _, m := range marked.FindAllStringSubmatch(string(text), -1) {
		out = append(out, sample{m[2], m[3], strings.ReplaceAll("\n"+m[4], "\n"+m[1], "\n")[1:]})
	}
	return out
}

// TestPages checks that the pages show the files that they name.
func TestPages(t *testing.T) {
	shown := 0
	for _, page := range []string{"kubernetes.md", "kubernetes-reference.md", "migration.md"} {
		for _, s := range samples(t, page) {
			if s.kind != "file" {
				continue
			}
			shown++
			if text, err := os.ReadFile(filepath.Join("..", "..", s.about)); err != nil || string(text) != s.text {
				t.Errorf("docs/%s shows an outdated version of %s; copy the file into the page (%v)", page, s.about, err)
			}
		}
	}
	if shown < 3 {
		t.Errorf("only %d files are shown", shown)
	}
}

// TestFirstGang runs the commands of the introduction, on one node with 8 GPUs.
func TestFirstGang(t *testing.T) {
	w := newWorld(t, controlplane.ControllerManager)
	w.addNamed("node-0")
	root := w.installPrograms()
	run := func(command, kubeconfig string) *exec.Cmd {
		c := exec.Command("bash", "-e", "-c", command)
		c.Dir = root
		c.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+strings.Join([]string{filepath.Join(root, "bin"), binaries(t), os.Getenv("PATH")}, ":"))
		return c
	}
	began := time.Now()
	var out []byte
	for _, s := range samples(t, "kubernetes.md") {
		switch s.kind {
		case "prints":
			if !strings.HasSuffix(string(out), s.text) {
				t.Errorf("the page says that this is printed:\n%s", s.text)
			}
		case "run":
			var err error
			out, err = run(s.text, w.cp.Kubeconfig()).CombinedOutput()
			t.Logf("%s after the start:\n%s%s", time.Since(began).Round(time.Second), s.text, out)
			if err != nil {
				t.Fatal(err)
			}
		case "start":
			scheduler, log := run("exec "+s.text, w.access), w.NewLog()
			scheduler.Stdout, scheduler.Stderr = log, log
			if err := scheduler.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = scheduler.Process.Kill()
				_ = scheduler.Wait()
				if log.Close(); t.Failed() {
					w.LogEnd(log.Name())
				}
			})
		}
	}
	bound := 0
	for name, p := range w.pods() {
		if strings.HasPrefix(name, "borrow-") && p.Spec.NodeName != "" && p.DeletionTimestamp == nil {
			bound++
		}
	}
	if bound != 5 || w.pods()["serve"].Spec.NodeName == "" {
		t.Errorf("%d pods of queue research run, want 5; pod serve: %s", bound, conditionText(w.pods()["serve"]))
	}
	w.checkRoom()
}

// installPrograms builds berth-scheduler and kubectl-berth, and returns a folder that has them
// in bin/, and the files of the module in kube/.
func (w *world) installPrograms() string {
	w.Helper()
	root := w.TempDir()
	module, err := filepath.Abs("..")
	if err != nil {
		w.Fatal(err)
	}
	if err := os.Symlink(module, filepath.Join(root, "kube")); err != nil {
		w.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", filepath.Join(root, "bin")+string(filepath.Separator), "./cmd/...")
	build.Dir = module
	if out, err := build.CombinedOutput(); err != nil {
		w.Fatalf("%v\n%s", err, out)
	}
	return root
}

// binaries returns the folder of kubectl.
func binaries(t *testing.T) string {
	t.Helper()
	bin, err := controlplane.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// TestManifests applies the manifests of the pages that are for berth-scheduler, and waits until
// their pods are bound.
func TestManifests(t *testing.T) {
	w := newWorldWith(t, controlplane.Options{
		Components: []controlplane.Component{controlplane.ControllerManager},
		Flags: map[controlplane.Component][]string{
			controlplane.APIServer:         {"--feature-gates=GenericWorkload=true", "--runtime-config=scheduling.k8s.io/v1alpha2=true"},
			controlplane.ControllerManager: {"--feature-gates=GenericWorkload=true"},
		},
	})
	w.addNodes(4)
	w.install("../config/crd/queues.berth.dev.yaml")
	w.apply(definition("scheduling.volcano.sh", "v1beta1", "PodGroup"))
	w.scheduler()
	tested := 0
	for _, page := range []string{"migration.md", "kubernetes-reference.md"} {
		for i, s := range samples(t, page) {
			var want int
			if n, err := fmt.Sscanf(s.about, "%d pods", &want); s.kind != "after" || err != nil || n != 1 {
				continue
			}
			tested++
			passed := t.Run(fmt.Sprintf("%s %d", page, i), func(t *testing.T) {
				w.TB = t
				w.apply(s.text)
				w.eventually(func() string { return w.boundEverywhere(want) })
				w.kubectl(s.text, "delete", "-f", "-", "--timeout=2m")
				w.eventually(func() string { return w.boundEverywhere(0) })
			})
			if !passed {
				return // its objects are left
			}
		}
	}
	if tested < 6 {
		t.Errorf("only %d manifests were found", tested)
	}
}

// boundEverywhere returns "" if there are so many pods of berth-scheduler in all namespaces, and
// all of them are bound.
func (w *world) boundEverywhere(want int) string {
	list, err := w.client.CoreV1().Pods(metav1.NamespaceAll).List(w.ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	bound := 0
	for i := range list.Items {
		p := &list.Items[i]
		if p.Spec.SchedulerName != "berth-scheduler" || p.DeletionTimestamp != nil {
			return fmt.Sprintf("pod %s/%s is of another scheduler, or is being deleted", p.Namespace, p.Name)
		}
		if p.Spec.NodeName == "" {
			return fmt.Sprintf("pod %s/%s is not bound: %s", p.Namespace, p.Name, conditionText(p))
		}
		bound++
	}
	if bound != want {
		return fmt.Sprintf("%d pods are bound, want %d", bound, want)
	}
	return ""
}
