package testcluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// asScheduler is set in the environment of processes that are berth-scheduler.
const asScheduler = "BERTH_TEST_SCHEDULER"

// asController is the value of asScheduler in the environment of processes that are
// berth-controller.
const asController = "controller"

// Main is the TestMain of packages that call Scheduler or Controller. The binary of their tests is
// also berth-scheduler and berth-controller, which the functions run; controller may be nil.
func Main(m *testing.M, scheduler, controller func() int) {
	switch os.Getenv(asScheduler) {
	case "":
		os.Exit(m.Run())
	case asController:
		os.Exit(controller())
	}
	os.Exit(scheduler())
}

// Instance is a process of berth-scheduler.
type Instance struct {
	*exec.Cmd
	Log   string        // the path of its log
	Ended chan struct{} // is closed when the process has ended
}

// Scheduler starts berth-scheduler with the permissions of the kubeconfig. It is killed when
// the test ends.
func (c *Cluster) Scheduler(kubeconfig string, flags ...string) *Instance {
	c.Helper()
	return c.start("1", append([]string{"--kubeconfig", kubeconfig, "--address", "", "--secure-address", ""}, flags...))
}

// Controller starts berth-controller with the permissions of the kubeconfig. It is killed when the
// test ends.
func (c *Cluster) Controller(kubeconfig string, flags ...string) *Instance {
	c.Helper()
	return c.start(asController, append([]string{"--kubeconfig", kubeconfig, "--address", ""}, flags...))
}

// start starts the binary of the test as the program.
func (c *Cluster) start(program string, flags []string) *Instance {
	c.Helper()
	file := c.NewLog()
	p := &Instance{Cmd: exec.Command(os.Args[0], flags...), Log: file.Name(), Ended: make(chan struct{})}
	p.Env, p.Stderr, p.Stdout = append(os.Environ(), asScheduler+"="+program), file, file
	if err := p.Start(); err != nil {
		c.Fatal(err)
	}
	go func() {
		_ = p.Wait()
		file.Close()
		close(p.Ended)
	}()
	t := c.TB
	c.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			logEnd(t, p.Log)
		}
	})
	return p
}

// Kill ends the process at once.
func (p *Instance) Kill() {
	_ = p.Process.Kill()
	<-p.Ended
}

// Stop asks the process to end, and waits until it has.
func (p *Instance) Stop() {
	_ = p.Process.Signal(syscall.SIGTERM)
	<-p.Ended
}

// NewLog creates the file for the log of a scheduler.
func (c *Cluster) NewLog() *os.File {
	c.Helper()
	c.starts++
	file, err := os.Create(filepath.Join(c.Logs, fmt.Sprintf("scheduler-%d.log", c.starts)))
	if err != nil {
		c.Fatal(err)
	}
	return file
}

// LogEnd shows the last lines of a log.
func (c *Cluster) LogEnd(path string) { logEnd(c.TB, path) }

func logEnd(t testing.TB, path string) {
	text, _ := os.ReadFile(path)
	lines := strings.Split(string(text), "\n")
	t.Logf("the end of %s:\n%s", filepath.Base(path), strings.Join(lines[max(0, len(lines)-40):], "\n"))
}
