package launch

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// hostile are arguments that a shell would change if it read them.
var hostile = []string{"a b", `"`, "'", "$HOME", "`id`", ";", "*", "--x={\"a\": 1}"}

// programIn writes a program that prints its name and each argument on a line of its own, after
// the commands.
func programIn(t *testing.T, dir, name, commands string) {
	t.Helper()
	text := "#!/bin/sh\n" + commands + "\necho " + name + "\nfor a in \"$@\"; do printf '%s\\n' \"$a\"; done\n"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// runIn runs a command with programs of the folder and returns what it prints.
func runIn(t *testing.T, dir string, environment []string, command ...string) string {
	t.Helper()
	path, err := exec.LookPath(command[0])
	if err != nil {
		t.Skipf("%s is not installed", command[0])
	}
	c := exec.CommandContext(t.Context(), path, command[1:]...)
	c.Env = append(environment, "PATH="+dir+":/usr/bin:/bin")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// The leader of a replica with Ray starts Ray, waits until all pods are there, and runs the server
// with unchanged arguments.
func TestRayLeader(t *testing.T) {
	dir := t.TempDir()
	programIn(t, dir, "ray", "")
	// python3 fails until the file has been made, and must be given the number of pods.
	programIn(t, dir, "python3", `[ "$3" = 3 ] && [ -e "`+dir+`/joined" ] && exit 0; touch "`+dir+`/joined"; exit 1`)
	programIn(t, dir, "sleep", "exit 0")
	programIn(t, dir, "vllm", "")
	got := runIn(t, dir, []string{"BERTH_NODES=3"}, append([]string{"sh", "-c", rayLeader, "sh", "vllm"}, hostile...)...)
	want := "ray\nstart\n--head\n--port=6379\nvllm\n" + strings.Join(hostile, "\n") + "\n"
	if got != want {
		t.Errorf("it prints\n%s\nwant\n%s", got, want)
	}
}

// A worker with Ray waits for the leader before it joins.
func TestRayWorker(t *testing.T) {
	dir := t.TempDir()
	programIn(t, dir, "ray", "")
	programIn(t, dir, "python3", `[ "$3" = leader.x ] && [ -e "`+dir+`/there" ] && exit 0; touch "`+dir+`/there"; exit 1`)
	programIn(t, dir, "sleep", "exit 0")
	got := runIn(t, dir, []string{"BERTH_LEADER=leader.x"}, "sh", "-c", rayWorker)
	if want := "ray\nstart\n--address=leader.x:6379\n--block\n"; got != want {
		t.Errorf("it prints\n%s\nwant\n%s", got, want)
	}
}

// The leader of a llama.cpp replica waits until all RPC servers answer.
func TestRPCLeader(t *testing.T) {
	dir := t.TempDir()
	programIn(t, dir, "llama-server", "")
	var listeners []string
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, l.Addr().String())
		_ = l.Close()
	}
	opened := make(chan error, 1)
	go func() {
		time.Sleep(100 * time.Millisecond)
		for _, address := range listeners {
			l, err := net.Listen("tcp", address)
			if err != nil {
				opened <- err
				return
			}
			defer l.Close()
		}
		opened <- nil
		<-t.Context().Done()
	}()
	got := runIn(t, dir, nil, append([]string{"bash", "-c", rpcLeader, strings.Join(listeners, " "), "llama-server"}, hostile...)...)
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	if want := "llama-server\n" + strings.Join(hostile, "\n") + "\n"; got != want {
		t.Errorf("it prints\n%s\nwant\n%s", got, want)
	}
}

// Kubernetes expands $(NAME) in commands. The scripts must contain none.
func TestScriptsHaveNoVariablesOfKubernetes(t *testing.T) {
	for _, script := range []string{rayLeader, rayWorker, rpcLeader} {
		if strings.Contains(script, "$(") || strings.Contains(script, "$$") {
			t.Errorf("Kubernetes changes %s", script)
		}
	}
}
