package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	// readyTimeout bounds the start of one component. It suits a machine whose processors
	// are busy with a build.
	readyTimeout = 2 * time.Minute
	// checkTimeout bounds one check of readiness.
	checkTimeout = 10 * time.Second
	// terminateTimeout is the time that a component has to end before it is killed.
	terminateTimeout = 5 * time.Second
	pollInterval     = 50 * time.Millisecond
	// tailLines is the number of lines of a log that an error quotes.
	tailLines = 20
)

// process is a component that can be started, ended and started again. It is not safe for
// concurrent use.
type process struct {
	component Component
	path      string
	args      []string
	dir       string // the working directory and home directory
	log       string // the file that receives the output
	ready     func(context.Context) error

	cmd  *exec.Cmd
	done chan struct{} // is closed when the process has ended
}

// start starts the process. The thread that creates the process remains until the process
// has ended, since the kernel ends a process with a parent-death signal when the thread
// that created it ends, not when the whole parent does.
func (p *process) start() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	cmd := exec.Command(p.path, p.args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "HOME="+p.dir)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = attributes()
	started, done := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(done)
		defer log.Close()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // The exit status is in cmd.ProcessState.
		}
	}()
	if err := <-started; err != nil {
		<-done
		return fmt.Errorf("%s: %w", p.component, err)
	}
	p.cmd, p.done = cmd, done
	return nil
}

// running reports whether the process has not ended.
func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// wait waits until the process is ready. Its error contains the last lines of the log.
func (p *process) wait(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		select {
		case <-p.done:
			cancel(fmt.Errorf("the process has ended: %v", p.cmd.ProcessState))
		case <-ctx.Done():
		}
	}()
	err := poll(ctx, func() error { return p.ready(ctx) })
	cancel(nil)
	<-watching
	if err != nil {
		return fmt.Errorf("%s is not ready: %w\nThe last lines of %s:\n%s", p.component, err, p.log, tail(p.log))
	}
	return nil
}

// kill ends the process at once and waits until it has ended.
func (p *process) kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// terminate asks the process to end, and kills it if it has not ended in time.
func (p *process) terminate() error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(terminateTimeout):
		return p.kill()
	}
}

// signal sends a signal. A process that has ended is not an error.
func (p *process) signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%s: %w", p.component, err)
	}
	return nil
}

// tail returns the last lines of a file.
func tail(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
